//! Keys of inputs and words of tool names that show what a call does.

/// Keys of a command. All keys are compared in small letters, without separators.
pub(super) const COMMAND_KEYS: &[&str] = &[
    "argv",
    "bash",
    "bashcommand",
    "bashscript",
    "cmd",
    "cmdline",
    "cmds",
    "command",
    "commandline",
    "commandlines",
    "commands",
    "commandstring",
    "commandtext",
    "commandtorun",
    "exec",
    "execute",
    "powershell",
    "pwsh",
    "run",
    "script",
    "scripts",
    "scripttext",
    "shell",
    "shellcmd",
    "shellcommand",
    "shellscript",
    "terminalcommand",
];

/// Keys of a list of whole commands, where others list the words of one.
pub(super) const COMMAND_LIST_KEYS: &[&str] = &["cmds", "commandlines", "commands", "scripts"];

/// Keys of a program that gets [`ARGUMENT_KEYS`].
pub(super) const PROGRAM_KEYS: &[&str] = &["binary", "bin", "exe", "executable", "program"];

pub(super) const ARGUMENT_KEYS: &[&str] = &["args", "arguments", "argumentlist"];

/// Keys that name the language of a piece of code.
pub(super) const LANGUAGE_KEYS: &[&str] = &["interpreter", "kernel", "lang", "language", "runtime"];

/// Languages, and how a shell runs a text in them; nothing for a shell's own text.
pub(super) const LANGUAGES: &[(&str, &[&str])] = &[
    ("bash", &[]),
    ("console", &[]),
    ("fish", &[]),
    ("ksh", &[]),
    ("powershell", &[]),
    ("pwsh", &[]),
    ("sh", &[]),
    ("shell", &[]),
    ("terminal", &[]),
    ("zsh", &[]),
    ("javascript", &["node", "-e"]),
    ("js", &["node", "-e"]),
    ("node", &["node", "-e"]),
    ("perl", &["perl", "-e"]),
    ("php", &["php", "-r"]),
    ("python", &["python3", "-c"]),
    ("python3", &["python3", "-c"]),
    ("ruby", &["ruby", "-e"]),
];

/// Keys of code whose language another key names.
pub(super) const CODE_KEYS: &[&str] = &["code", "input", "source"];

/// Words in the name of a tool that types into a shell, and the keys of what it types.
pub(super) const KEYBOARD_WORDS: &[&str] = &["console", "pty", "terminal", "tmux", "tty"];
pub(super) const KEYSTROKE_KEYS: &[&str] = &[
    "chars",
    "input",
    "inputtext",
    "keys",
    "keystrokes",
    "stdin",
    "text",
];

/// Keys under which a tool that runs something by its name may take it.
pub(super) const TYPED_TEXT_KEYS: &[&str] = &[
    "input",
    "inputtext",
    "chars",
    "keys",
    "keystrokes",
    "stdin",
    "text",
    "code",
    "source",
    "data",
    "content",
    "line",
    "value",
    "query",
];

pub(super) const PATH_KEYS: &[&str] = &[
    "absolutepath",
    "abspath",
    "destination",
    "destinationpath",
    "destpath",
    "directorypath",
    "dirpath",
    "documenturi",
    "file",
    "filename",
    "filenames",
    "filepath",
    "filepaths",
    "files",
    "fileuri",
    "from",
    "frompath",
    "fullpath",
    "newpath",
    "notebook",
    "notebookpath",
    "notebookuri",
    "oldpath",
    "path",
    "pathname",
    "paths",
    "relativepath",
    "relativeworkspacepath",
    "relpath",
    "source",
    "sourcepath",
    "target",
    "targetfile",
    "targetfilepath",
    "targetnotebook",
    "targetpath",
    "to",
    "topath",
    "uri",
];

/// Path keys that have other meanings too: they count if the tool's name is one
/// of a tool that changes files.
pub(super) const WEAK_PATH_KEYS: &[&str] = &["destination", "from", "source", "target", "to"];

/// A path under one of these is written, whatever the tool is.
pub(super) const OUTPUT_KEYS: &[&str] = &[
    "downloadpath",
    "downloadto",
    "outfile",
    "outpath",
    "outputfile",
    "outputfilepath",
    "outputpath",
    "saveas",
    "saveasfilename",
    "savefile",
    "savepath",
    "saveto",
];

/// Keys of what is written to a file.
pub(super) const CONTENT_KEYS: &[&str] = &[
    "append",
    "appendtext",
    "blocks",
    "changes",
    "codecontent",
    "codeedit",
    "content",
    "contents",
    "contentbase64",
    "diff",
    "edit",
    "edits",
    "filecontent",
    "filecontents",
    "filetext",
    "hunks",
    "insert",
    "insertlineentries",
    "inserttext",
    "newcode",
    "newcontent",
    "newcontents",
    "newsource",
    "newstr",
    "newstring",
    "newtext",
    "newvalue",
    "oldstr",
    "oldstring",
    "oldtext",
    "patch",
    "replacement",
    "replacementchunks",
    "replacements",
    "replacewith",
    "strreplaceentries",
    "unifieddiff",
];

/// Content keys that have other meanings too: they do not count if the tool's
/// name is one of a tool that reads.
pub(super) const WEAK_CONTENT_KEYS: &[&str] = &[
    "body", "code", "data", "lines", "new", "replace", "source", "text", "value",
];

pub(super) const OLD_TEXT_KEYS: &[&str] = &["old", "oldstr", "oldstring", "oldtext", "search"];

pub(super) const NEW_TEXT_KEYS: &[&str] = &["new", "newstr", "newstring", "newtext", "replace"];

/// Keys of the input of another tool, which may be JSON in a text.
pub(super) const WRAPPER_KEYS: &[&str] = &[
    "args",
    "argument",
    "arguments",
    "call",
    "input",
    "json",
    "kwargs",
    "options",
    "parameters",
    "params",
    "payload",
    "request",
    "toolargs",
    "toolcall",
    "toolinput",
];

/// Words in the name of a tool that runs commands or code.
pub(super) const SHELL_WORDS: &[&str] = &[
    "bash",
    "cmd",
    "commandline",
    "console",
    "exec",
    "interpreter",
    "powershell",
    "pty",
    "pwsh",
    "python",
    "repl",
    "sh",
    "shell",
    "ssh",
    "stdin",
    "subprocess",
    "terminal",
    "tty",
    "zsh",
];

/// Words that mean the same together with one of [`RUNNABLE_WORDS`].
pub(super) const RUN_WORDS: &[&str] = &[
    "control", "eval", "evaluate", "execute", "invoke", "launch", "run", "send", "spawn", "start",
    "write",
];

pub(super) const RUNNABLE_WORDS: &[&str] = &[
    "build",
    "cell",
    "code",
    "command",
    "commands",
    "javascript",
    "job",
    "node",
    "process",
    "program",
    "script",
    "task",
    "tests",
];

/// Words in the name of a tool that only looks, or ends what runs.
pub(super) const PASSIVE_WORDS: &[&str] = &[
    "await",
    "cancel",
    "check",
    "close",
    "describe",
    "fetch",
    "find",
    "get",
    "glob",
    "grep",
    "history",
    "info",
    "kill",
    "last",
    "list",
    "log",
    "logs",
    "lookup",
    "open",
    "output",
    "poll",
    "query",
    "read",
    "search",
    "selection",
    "show",
    "status",
    "stop",
    "view",
    "wait",
];

/// Words in the name of a tool that changes files.
pub(super) const WRITE_WORDS: &[&str] = &[
    "append",
    "copy",
    "cp",
    "create",
    "delete",
    "download",
    "edit",
    "erase",
    "export",
    "insert",
    "mkdir",
    "modify",
    "move",
    "multiedit",
    "mv",
    "new",
    "overwrite",
    "patch",
    "remove",
    "rename",
    "replace",
    "rm",
    "save",
    "touch",
    "trash",
    "truncate",
    "unlink",
    "update",
    "write",
];

pub(super) const DELETE_WORDS: &[&str] = &["delete", "erase", "remove", "rm", "trash", "unlink"];
