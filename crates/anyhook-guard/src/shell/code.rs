//! One-liners of interpreters: the shell calls and the plain file operations in
//! them. Not a parser of those languages: calls by name with literal arguments.

use std::borrow::Cow;

use super::evaluate::{Evaluator, MAX_WRAPPERS, Scope, StageInput};
use super::invocation::{Invocation, ResolvedWord, UNKNOWN};
use super::wrappers::first_operand;

/// Calls that are looked at in one text.
const MAX_CALLS: usize = 64;

/// Code in which joined paths are put together.
const MAX_JOINED_CODE_BYTES: usize = 8 << 10;

/// What a call of that name does with its arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallEffect {
    Shell,
    DeleteTree,
    Delete,
    Read,
    Write,
    Move,
    Copy,
    Fetch,
    /// A path whose method says what is done.
    Path,
    /// Files that the rest of the code may delete.
    List,
}

fn call_effect(name: &str, arguments: &str) -> Option<CallEffect> {
    let last = name.rsplit(['.', ':', '>', '$']).next().unwrap_or(name);
    Some(match last {
        "system"
        | "popen"
        | "exec"
        | "execSync"
        | "execFile"
        | "execFileSync"
        | "spawn"
        | "spawnSync"
        | "call"
        | "run"
        | "check_call"
        | "check_output"
        | "Popen"
        | "getoutput"
        | "getstatusoutput"
        | "shell_exec"
        | "passthru"
        | "proc_open"
        | "pcntl_exec"
        | "execute"
        | "execvp"
        | "execv"
        | "execl"
        | "execlp"
        | "spawnl"
        | "spawnlp"
        | "spawnv"
        | "spawnvp"
        | "capture2"
        | "capture2e"
        | "capture3"
        | "popen3"
        | "popen2"
        | "qx"
        | "x"
        | "create_subprocess_shell"
        | "create_subprocess_exec"
        | "shell"
        | "sh"
        | "execa"
        | "execaSync"
        | "shell-command"
        | "syscmd"
        | "esyscmd"
        | "termopen"
        | "cmd"
        | "execaCommand" => CallEffect::Shell,
        "rmtree"
        | "rm_rf"
        | "rm_r"
        | "remove_entry_secure"
        | "remove_dir_all"
        | "rimraf"
        | "rimrafSync"
        | "removeSync"
        | "emptyDirSync"
        | "emptyDir"
        | "remove_tree"
        | "deltree"
        | "removedirs"
        | "remove_dir"
        | "rmdir_r"
        | "secure_delete"
        | "delete-directory" => CallEffect::DeleteTree,
        "rm" | "rmSync" | "rmdirSync" | "rmdir" | "remove" | "unlink"
            if arguments.contains("recursive") =>
        {
            CallEffect::DeleteTree
        }
        "rm" | "rmSync" | "rmdir" | "rmdirSync" | "unlink" | "unlinkSync" | "remove" | "delete"
        | "delete-file" => CallEffect::Delete,
        "glob" | "iglob" | "scandir" | "listdir" | "readdirSync" => CallEffect::List,
        "readFileSync" | "readFile" | "file_get_contents" | "readlines" | "slurp" | "readfile"
        | "readTextFile" | "readTextFileSync" | "fopen" | "createReadStream" | "read_csv"
        | "dotenv_values" | "load_dotenv" => CallEffect::Read,
        "open" | "openSync" | "fopen64" => {
            let mode = [
                "'w", "\"w", "'a", "\"a", "'x", "\"x", "'r+", "\"r+", "'>", "\">",
            ];
            if mode.iter().any(|mode| arguments.contains(mode)) {
                CallEffect::Write
            } else {
                CallEffect::Read
            }
        }
        "sync" if name.ends_with("rimraf.sync") => CallEffect::DeleteTree,
        // `configparser.read('file')`; a stream's has no text.
        "read" if arguments.starts_with(['\'', '"']) || arguments.contains("expanduser") => {
            CallEffect::Read
        }
        "read" | "foreach" | "each_line" | "binread"
            if name.starts_with("File") || name.starts_with("IO") =>
        {
            CallEffect::Read
        }
        "write" if name.starts_with("File") || name.starts_with("IO") => CallEffect::Write,
        "writeFileSync" | "writeFile" | "appendFileSync" | "appendFile" | "file_put_contents"
        | "createWriteStream" | "truncateSync" | "truncate" => CallEffect::Write,
        "move" | "rename" | "renameSync" | "replace_file" => CallEffect::Move,
        "copy" | "copyfile" | "copyFileSync" | "copytree" | "cpSync" | "copy2" | "symlink" => {
            CallEffect::Copy
        }
        "urlopen" | "urlretrieve" | "fetch" | "get" | "post" | "put" | "request" | "axios"
        | "open_uri" | "getprint" | "getstore" | "mirror" | "head" | "getpage"
            if arguments.contains("://") =>
        {
            CallEffect::Fetch
        }
        "file" if arguments.starts_with(['\'', '"']) => CallEffect::Read,
        "Path" | "PosixPath" | "Pathname" => CallEffect::Path,
        _ => return None,
    })
}

/// Notes a program; runs the calls of an interpreter's code.
pub(super) fn start_interpreter(
    evaluator: &mut Evaluator<'_>,
    started: Invocation,
    scope: &Scope,
    input: &StageInput,
) {
    // A script that an earlier part of the command wrote.
    let written = || {
        let stem = started
            .name
            .trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        let is_interpreter = matches!(
            stem,
            "python" | "node" | "perl" | "ruby" | "php" | "bun" | "tsx" | "ts-node" | "lua"
        );
        let file = started.operands().next().filter(|_| is_interpreter)?;
        evaluator.written_text(scope, &file.text)
    };
    let Some(code) = interpreter_code(&started, input).or_else(written) else {
        let module = python_module(&started);
        evaluator.emit(started.clone());
        if let Some(words) = module {
            let inner = Invocation {
                words: Vec::new(),
                ..started
            };
            let mut child = scope.clone();
            // Modules that start modules are not followed far.
            let outer = scope.via.iter().filter(|via| *via == "python").count();
            if outer > 0 {
                evaluator.is_incomplete = true;
                return;
            }
            child.via.push("python".to_owned());
            evaluator.start(words, inner, &mut child, input);
        }
        return;
    };
    let mut noted = started.clone();
    noted.code = Some(code.clone());
    evaluator.emit(noted);
    let mut child = scope.clone();
    if child.via.len() > MAX_WRAPPERS {
        evaluator.is_incomplete = true;
        return;
    }
    child.via.push(started.name.clone());
    run_code(evaluator, &code, &started.name, &child);
}

/// `python -m alembic …` starts what `alembic …` starts.
fn python_module(started: &Invocation) -> Option<Vec<ResolvedWord>> {
    let at = started
        .words
        .iter()
        .position(|word| word.text.starts_with("-m"))?;
    let mut words = started.words.get(at + 1..)?.to_vec();
    let attached = started.words.get(at)?.text.get(2..).unwrap_or_default();
    if !attached.is_empty() {
        words.insert(0, ResolvedWord::new(attached));
    }
    // A tool of the library that prints its file.
    if let Some(module) = words.first_mut()
        && matches!(
            module.text.as_str(),
            "json.tool" | "base64" | "zipfile" | "tarfile" | "tokenize"
        )
    {
        *module = ResolvedWord::new("cat");
    }
    (started.name.starts_with("python") && at < 4 && !words.is_empty()).then_some(words)
}

fn interpreter_code(started: &Invocation, input: &StageInput) -> Option<String> {
    let name = started.name.as_str();
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let words = &started.words;
    let after = |letters: &str, long: &[&str]| -> Option<String> {
        let mut codes: Vec<&str> = Vec::new();
        for (index, word) in words.iter().enumerate().skip(1) {
            let text = word.text.as_str();
            let is_flag = text.strip_prefix('-').is_some_and(|cluster| {
                !cluster.is_empty()
                    && !cluster.starts_with('-')
                    && cluster.len() <= 5
                    && cluster
                        .chars()
                        .last()
                        .is_some_and(|last| letters.contains(last))
                    && cluster.chars().all(char::is_alphanumeric)
            });
            if is_flag || long.contains(&text) {
                codes.extend(words.get(index + 1).map(|word| word.text.as_str()));
            } else if let Some((option, value)) = text.split_once('=')
                && long.contains(&option)
            {
                codes.push(value);
            }
        }
        (!codes.is_empty()).then(|| codes.join("\n"))
    };
    let from_input = || {
        let at = first_operand(words, 1, &["-m", "-W", "-X", "-I", "-r"]);
        let reads = words
            .get(at)
            .is_none_or(|word| matches!(word.text.as_str(), "-" | "/dev/stdin"));
        reads
            .then(|| input.text.as_deref().map(str::to_owned))
            .flatten()
    };
    match stem {
        "python" | "pypy" | "ipython" => after("c", &[]).or_else(from_input),
        "node" | "nodejs" | "bun" | "tsx" | "ts-node" => {
            after("ep", &["--eval", "--print", "-pe"]).or_else(from_input)
        }
        "deno" => (words.get(1).is_some_and(|word| word.text == "eval"))
            .then(|| words.last().map(|word| word.text.clone()))
            .flatten(),
        "perl" => after("eE", &[]).or_else(from_input),
        "ruby" | "irb" | "jruby" => after("e", &[]).or_else(from_input),
        "lua" | "luajit" | "Rscript" | "R" | "groovy" | "scala" | "julia" | "elixir" | "swift" => {
            after("e", &["--eval"]).or_else(from_input)
        }
        "php" => after("r", &["--run"]).or_else(from_input),
        "expect" => after("c", &[]).or_else(from_input),
        "tclsh" | "wish" | "jshell" => from_input(),
        // Lines that leave the client for a shell: `\! cmd`, `.shell cmd`, `system cmd`.
        "psql" | "sqlite" | "mysql" | "mariadb" => {
            let lines = started.texts().chain(input.text.as_deref());
            let commands: Vec<&str> = lines
                .flat_map(str::lines)
                .filter_map(|line| {
                    [r"\!", ".shell ", ".system ", "system "]
                        .iter()
                        .find_map(|mark| line.trim_start().strip_prefix(mark))
                })
                .take(MAX_CALLS)
                .collect();
            (!commands.is_empty()).then(|| format!("system({})", quoted(&commands.join("; "))))
        }
        // A line with `!` runs a command.
        "ed" => {
            let lines = input.text.as_deref().unwrap_or_default().lines();
            let commands: Vec<&str> = lines.filter_map(|line| line.strip_prefix('!')).collect();
            (!commands.is_empty()).then(|| format!("system({})", quoted(&commands.join("; "))))
        }
        "less" | "more" => {
            let commands: Vec<String> = started
                .texts()
                .filter(|text| text.starts_with('+'))
                .filter_map(editor_command)
                .collect();
            (!commands.is_empty()).then(|| commands.join("\n"))
        }
        "osascript" => after("e", &[]).or_else(from_input),
        "awk" | "gawk" | "mawk" | "nawk" => {
            let at = first_operand(words, 1, &["-F", "-v", "-f"]);
            let has_file = started.has_option("f", &["--file"]);
            (!has_file)
                .then(|| words.get(at).map(|word| word.text.clone()))
                .flatten()
        }
        "emacs" => after("", &["--eval", "-eval", "--execute"]),
        "gdb" => {
            let commands: Vec<&str> = started
                .texts()
                .filter_map(|text| {
                    text.strip_prefix("shell ")
                        .or_else(|| text.strip_prefix('!'))
                })
                .collect();
            (!commands.is_empty()).then(|| format!("system({})", quoted(&commands.join("; "))))
        }
        "zip" => {
            let at = words.iter().position(|word| word.text == "-TT");
            at.and_then(|at| words.get(at + 1))
                .map(|word| format!("system({})", quoted(&word.text)))
        }
        "vim" | "nvim" | "vi" | "ex" | "view" => {
            let commands: Vec<String> = started.texts().filter_map(editor_command).collect();
            (!commands.is_empty()).then(|| commands.join("\n"))
        }
        "sed" | "gsed" => {
            let commands: Vec<String> = started.texts().filter_map(sed_command).collect();
            (!commands.is_empty()).then(|| format!("system({})", quoted(&commands.join("; "))))
        }
        // m4, without its number; its quotes are `text'.
        "m" => from_input().map(|text| text.replace('`', "'")),
        "tar" => {
            let actions: Vec<&str> = started
                .texts()
                .filter_map(|text| {
                    text.strip_prefix("--checkpoint-action=exec=")
                        .or_else(|| text.strip_prefix("--to-command="))
                        .or_else(|| text.strip_prefix("--use-compress-program="))
                })
                .collect();
            (!actions.is_empty()).then(|| format!("system({})", quoted(&actions.join("; "))))
        }
        _ => None,
    }
}

/// A command of vim that runs a program: `!cmd`, `silent !cmd`, `call system('cmd')`.
fn editor_command(text: &str) -> Option<String> {
    let text = text.trim_start_matches(['+', ':', ' ']);
    let text = text.strip_prefix("silent").map_or(text, |rest| {
        // `silent!` also hides errors; the `!` of the command follows a space.
        let rest = rest.strip_prefix("! ").unwrap_or(rest);
        rest.trim_start_matches(' ')
    });
    if ["system(", "execute(", "termopen("]
        .iter()
        .any(|call| text.contains(call))
    {
        return Some(text.to_owned());
    }
    let program = ["!", "r !", "r!", "w !", "term ", "terminal ", "%!"]
        .iter()
        .find_map(|start| text.strip_prefix(start))?;
    Some(format!("system({})", quoted(program)))
}

/// What a sed script runs: `1e command`, or the result of `s/…/…/e`.
fn sed_command(text: &str) -> Option<String> {
    let text = text
        .strip_prefix("--expression=")
        .or_else(|| text.strip_prefix("-e").filter(|script| !script.is_empty()))
        .unwrap_or(text);
    if text.starts_with('-') {
        return None;
    }
    let rest = text.trim_start_matches(|letter: char| {
        letter.is_ascii_digit() || matches!(letter, '$' | ',' | ' ' | '{')
    });
    let rest = rest.trim_end_matches([' ', '}']);
    if let Some(command) = rest.strip_prefix("e ") {
        return Some(command.to_owned());
    }
    let mut letters = rest.strip_prefix('s')?.chars();
    let separator = letters.next().filter(|letter| !letter.is_alphanumeric())?;
    let script: String = letters.collect();
    let escaped = format!("\\{separator}");
    let parts: Vec<String> = script
        .replace(&escaped, &UNKNOWN.to_string())
        .split(separator)
        .map(|part| part.replace(UNKNOWN, &separator.to_string()))
        .collect();
    let [_, replacement, flags] = parts.as_slice() else {
        return None;
    };
    flags.contains('e').then(|| replacement.clone())
}

/// PHP's `getenv("HOME")."/x"` is `"/home/…/x"`.
fn name_home_folder(code: &str, home: &str) -> String {
    let mut plain = code.to_owned();
    for quote in ['"', '\''] {
        for call in [
            format!("getenv({quote}HOME{quote})"),
            format!("$_SERVER[{quote}HOME{quote}]"),
            format!("$_ENV[{quote}HOME{quote}]"),
        ] {
            for dot in [".", " . "] {
                for next in ['"', '\''] {
                    let joined = format!("{call}{dot}{next}");
                    plain = plain.replace(&joined, &format!("{next}{home}"));
                }
            }
        }
    }
    plain
}

/// Perl's `qw(a b)` is `("a", "b")`.
fn expand_word_lists(code: &str) -> Cow<'_, str> {
    if !code.contains("qw") {
        return Cow::Borrowed(code);
    }
    let mut expanded = String::with_capacity(code.len());
    let mut rest = code;
    while let Some((before, after)) = rest.split_once("qw") {
        let inner = after.trim_start();
        let close = match inner.chars().next() {
            Some('(') => ')',
            Some('[') => ']',
            Some('{') => '}',
            Some('<') => '>',
            Some(other) if !other.is_alphanumeric() => other,
            _ => '\0',
        };
        let words = inner.get(1..).and_then(|inner| inner.split_once(close));
        expanded.push_str(before);
        if let Some((words, after)) = words.filter(|_| close != '\0') {
            let words: Vec<String> = words.split_whitespace().map(quoted).collect();
            expanded.push('(');
            expanded.push_str(&words.join(","));
            expanded.push(')');
            rest = after;
        } else {
            expanded.push_str("qw");
            rest = after;
        }
    }
    expanded.push_str(rest);
    Cow::Owned(expanded)
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn run_code(evaluator: &mut Evaluator<'_>, code: &str, interpreter: &str, scope: &Scope) {
    let listed = match interpreter {
        "perl" => expand_word_lists(code),
        "php" => Cow::Owned(name_home_folder(code, &evaluator.home(scope))),
        _ => Cow::Borrowed(code),
    };
    let plain = name_required_modules(&listed);
    let plain = join_paths(&plain, &evaluator.home(scope));
    let code = plain.as_str();
    let constants = literal_constants(code, &evaluator.home(scope));
    let mut scripts: Vec<String> = Vec::new();
    let mut commands: Vec<Vec<ResolvedWord>> = Vec::new();
    for call in find_calls(code) {
        let Some(effect) = call_effect(call.name, call.arguments) else {
            continue;
        };
        let mut values = call_values(&call, &constants, evaluator, scope);
        if interpreter == "perl" && call.name == "open" {
            // A handle, a mode that may be part of the name, a file.
            values.retain(|value| !value.chars().all(|letter| letter == UNKNOWN));
            let mut modes = values.iter();
            if let Some(mode) = modes.next().and_then(|mode| mode.strip_suffix('|')) {
                // `open(P, "cmd |")` or `open(P, "-|", "cmd")`.
                scripts.extend(modes.next().cloned());
                scripts.push(mode.to_owned());
            }
            for value in &mut values {
                *value = value.trim_start_matches(['<', '>', '+', ' ']).to_owned();
            }
            values.retain(|value| !value.is_empty() && value != "-|" && value != "|-");
        }
        match effect {
            CallEffect::Shell => {
                let is_list = call.arguments.contains('[') || values.len() > 1;
                match values.as_slice() {
                    [] => {}
                    [first, ..] if !is_list || first.contains(' ') => scripts.push(first.clone()),
                    // `sh -c script` in a list, or a program with its arguments.
                    // The second one is the name that the program sees: `execlp('git', 'git', …)`.
                    [program, name, rest @ ..] if program == name => {
                        let words = std::iter::once(program).chain(rest);
                        commands.push(words.map(ResolvedWord::new).collect());
                    }
                    words => commands.push(words.iter().map(ResolvedWord::new).collect()),
                }
            }
            CallEffect::DeleteTree => commands.push(command(&["rm", "-rf"], values, true)),
            CallEffect::Delete => commands.push(command(&["rm"], values, false)),
            CallEffect::Read => commands.push(command(&["cat"], first_value(values), false)),
            CallEffect::Write => commands.push(command(&["tee"], first_value(values), false)),
            CallEffect::Move => commands.push(command(&["mv"], values, false)),
            CallEffect::Copy => commands.push(command(&["cp"], values, false)),
            CallEffect::Fetch => commands.push(command(&["curl"], first_value(values), false)),
            CallEffect::List => {
                let deletes = [
                    "remove(",
                    "unlink",
                    "rmtree(",
                    "rmSync(",
                    "rm_r",
                    "FileUtils.rm",
                ]
                .iter()
                .any(|mark| code.contains(mark));
                if deletes {
                    commands.push(command(&["rm", "-r"], values, false));
                }
            }
            CallEffect::Path => {
                let programs: &[(&str, &[&str])] = &[
                    ("read_text", &["cat"]),
                    ("read_bytes", &["cat"]),
                    (".read", &["cat"]),
                    ("write_text", &["tee"]),
                    ("write_bytes", &["tee"]),
                    (".touch(", &["tee"]),
                    (".mkdir(", &["mkdir"]),
                    (".symlink_to(", &["tee"]),
                    (".unlink", &["rm"]),
                    (".rmdir", &["rm"]),
                    ("rmtree", &["rm", "-rf"]),
                ];
                for (method, program) in programs {
                    if code.contains(method) {
                        commands.push(command(program, values.clone(), false));
                    }
                }
            }
        }
    }
    if matches!(interpreter, "perl" | "ruby" | "php" | "irb" | "jruby") {
        scripts.extend(between(code, '`', '`'));
    }
    if calls_by_name(code) {
        // Which function gets a text is not known, so that each may be a command.
        let texts = ['\'', '"']
            .into_iter()
            .flat_map(|quote| between(code, quote, quote));
        scripts.extend(texts.filter(|text| text.trim().contains(' ')));
    }
    for (mark, close) in [
        ("%x(", ')'),
        ("%x{", '}'),
        ("%x[", ']'),
        ("qx(", ')'),
        ("qx{", '}'),
        ("qx/", '/'),
        ("qx!", '!'),
    ] {
        scripts.extend(code.split(mark).skip(1).filter_map(|rest| {
            let end = rest.find(close)?;
            rest.get(..end).map(str::to_owned)
        }));
    }
    if matches!(interpreter, "bun" | "zx" | "deno") {
        // `$`command`` of their shells.
        scripts.extend(
            code.split("$`")
                .skip(1)
                .filter_map(|rest| rest.split('`').next().map(str::to_owned)),
        );
    }
    if interpreter == "ipython" {
        let lines = code.lines().map(str::trim_start);
        scripts.extend(lines.filter_map(|line| line.strip_prefix('!').map(str::to_owned)));
    }
    if interpreter == "groovy" {
        // `"cmd".execute()`.
        let parts = code.split(".execute(").collect::<Vec<_>>();
        let before = parts.split_last().map_or(&[][..], |(_, before)| before);
        scripts.extend(before.iter().filter_map(|part| {
            let part = part.strip_suffix(['"', '\''])?;
            let start = part.rfind(['"', '\''])?;
            part.get(start + 1..).map(str::to_owned)
        }));
    }
    if interpreter == "osascript" {
        let parts = code.split("do shell script").skip(1);
        scripts.extend(parts.filter_map(|rest| literal(rest.trim_start()).map(|(text, _)| text)));
    }
    if matches!(interpreter, "expect" | "tclsh" | "wish") {
        let lines = code.split([';', '\n']).map(str::trim_start);
        scripts.extend(lines.filter_map(|line| {
            let line = line.trim_start_matches(['{', '[']);
            let (call, command) = line.split_once(' ')?;
            matches!(call, "spawn" | "exec" | "system").then(|| command.to_owned())
        }));
    }
    if interpreter.ends_with("awk") {
        // `print | "cmd"` and `"cmd" | getline`.
        let piped = code
            .split('|')
            .skip(1)
            .filter_map(|rest| literal(rest.trim_start()));
        scripts.extend(piped.map(|(text, _)| text));
        // What is before a pipe into `getline` or a shell.
        let parts: Vec<&str> = code.split('|').collect();
        for pair in parts.windows(2) {
            let [before, after] = pair else {
                continue;
            };
            let after = after.trim_start().trim_start_matches('"');
            let runs = ["getline", "sh\"", "bash\"", "/bin/sh\""]
                .iter()
                .any(|reader| after.starts_with(reader));
            let text = before
                .trim_end()
                .strip_suffix('"')
                .and_then(|text| text.rsplit_once('"'));
            scripts.extend(text.filter(|_| runs).map(|(_, text)| text.to_owned()));
        }
    }
    for script in scripts.iter().take(MAX_CALLS) {
        evaluator.run_child_text(script, scope, &StageInput::default());
    }
    for words in commands.into_iter().take(MAX_CALLS) {
        if words.len() > 1 {
            let started = Invocation::in_scope(scope);
            evaluator.start(words, started, &mut scope.clone(), &StageInput::default());
        }
    }
}

/// `require("os").homedir()` reads like `os.homedir()`.
fn name_required_modules(code: &str) -> String {
    let mut plain = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find("require(") {
        plain.push_str(rest.get(..at).unwrap_or_default());
        rest = rest.get(at..).unwrap_or_default();
        let after = rest.get("require(".len()..).unwrap_or_default();
        match literal(after) {
            Some((module, length))
                if after.get(length..).is_some_and(|end| end.starts_with(").")) =>
            {
                plain.push_str(module.rsplit(['/', ':']).next().unwrap_or_default());
                rest = after.get(length + 1..).unwrap_or_default();
            }
            _ => {
                plain.push_str("require(");
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain
}

/// Paths that code joins from literals, as one literal: `Path.home() / ".ssh"`,
/// `os.path.join("a", "b")`.
fn join_paths(code: &str, home: &str) -> String {
    // Each step reads the code again.
    if code.len() > MAX_JOINED_CODE_BYTES {
        return code.to_owned();
    }
    let home = quoted(home);
    let mut code = code
        .replace("Path.home()", &format!("Path({home})"))
        .replace("os.homedir()", &home)
        .replace("os.path.expanduser('~')", &home)
        .replace("os.path.expanduser(\"~\")", &home);
    for _ in 0..MAX_CALLS {
        let Some((start, end, joined)) = next_division(&code).or_else(|| next_join(&code)) else {
            break;
        };
        code.replace_range(start..end, &joined);
    }
    code
}

/// `"a" / "b"` and `Path("a") / "b"`: where it is, and what it is together.
fn next_division(code: &str) -> Option<(usize, usize, String)> {
    code.match_indices('/').find_map(|(at, _)| {
        let before = code.get(..at)?.trim_end();
        let (inside, closing) = match before.strip_suffix(')') {
            Some(inside) => (inside.trim_end(), ")"),
            None => (before, ""),
        };
        let quote = inside
            .chars()
            .next_back()
            .filter(|last| matches!(last, '\'' | '"'))?;
        let inside = inside.get(..inside.len() - 1)?;
        let start = inside.rfind(quote)?;
        let rest = code.get(at + 1..)?;
        let after = rest.trim_start();
        let (second, length) = literal(after)?;
        let first = inside.get(start + 1..)?;
        let end = code.len() - after.len() + length;
        let joined = format!("{}{closing}", quoted(&format!("{first}/{second}")));
        Some((start, end, joined))
    })
}

/// `path.join("a", "b")` with nothing but literals.
fn next_join(code: &str) -> Option<(usize, usize, String)> {
    let mut joins = code.match_indices("path.join(").take(MAX_CALLS);
    joins.find_map(|(at, mark)| {
        let open = at + mark.len() - 1;
        let end = closing(code.as_bytes(), open);
        let arguments = code.get(open + 1..end)?;
        let mut parts = Vec::new();
        let mut rest = arguments.trim();
        while !rest.is_empty() {
            let (part, length) = literal(rest)?;
            parts.push(part);
            rest = rest
                .get(length..)?
                .trim_start()
                .trim_start_matches(',')
                .trim_start();
        }
        let start = if code.get(..at)?.ends_with("os.") {
            at - 3
        } else {
            at
        };
        Some((start, end + 1, quoted(&parts.join("/"))))
    })
}

/// Whether code looks functions up by a name: `getattr(os, "system")(…)`.
fn calls_by_name(code: &str) -> bool {
    let is_variable_call = || {
        // php: `$name(`.
        code.match_indices('$').any(|(at, _)| {
            let rest = code.get(at + 1..).unwrap_or_default();
            let name = identifier(rest);
            !name.is_empty()
                && rest
                    .get(name.len()..)
                    .is_some_and(|rest| rest.starts_with("(\"") || rest.starts_with("('"))
        })
    };
    [
        "getattr(",
        "globals()[",
        "['exec",
        "[\"exec",
        "['spawn",
        "[\"spawn",
        "['system",
        "call_user_func",
        ".send(:",
        ".public_send(",
        ".method(:",
    ]
    .iter()
    .any(|mark| code.contains(mark))
        || is_variable_call()
}

fn first_value(values: Vec<String>) -> Vec<String> {
    values.into_iter().take(1).collect()
}

fn command(program: &[&str], values: Vec<String>, needs_value: bool) -> Vec<ResolvedWord> {
    let mut words: Vec<ResolvedWord> = program
        .iter()
        .map(|word| ResolvedWord::new(*word))
        .collect();
    if values.is_empty() && needs_value {
        words.push(ResolvedWord::unknown());
    }
    for value in values {
        let mut word = ResolvedWord::new(value);
        word.is_pattern = word.text.contains('*');
        words.push(word);
    }
    words
}

fn between(code: &str, open: char, close: char) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(open) {
        let inside = rest.get(at + open.len_utf8()..).unwrap_or_default();
        let Some(end) = inside.find(close) else {
            break;
        };
        found.extend(inside.get(..end).map(str::to_owned));
        rest = inside.get(end + close.len_utf8()..).unwrap_or_default();
    }
    found
}

struct CodeCall<'a> {
    name: &'a str,
    /// The text between the parentheses, or the rest of the statement.
    arguments: &'a str,
}

/// Other names that the code gives to functions: `{execSync: e}`, `system as s`.
fn renamed_functions(code: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for mark in [":", " as "] {
        for (at, _) in code.match_indices(mark).take(MAX_CALLS) {
            let before = code.get(..at).unwrap_or_default().trim_end();
            let start = before
                .rfind(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
                .map_or(0, |found| found + 1);
            let name = before.get(start..).unwrap_or_default();
            let after = code.get(at + mark.len()..).unwrap_or_default().trim_start();
            let other = identifier(after);
            if !name.is_empty()
                && !other.is_empty()
                && matches!(
                    call_effect(name, ""),
                    Some(CallEffect::Shell | CallEffect::Path | CallEffect::DeleteTree)
                )
            {
                found.push((other, name));
            }
        }
    }
    found
}

/// Calls in the order in which they stand.
fn find_calls(code: &str) -> Vec<CodeCall<'_>> {
    let renamed = renamed_functions(code);
    let bytes = code.as_bytes();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:>$-".contains(&byte);
    let mut calls = Vec::new();
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        let start = index;
        if !(byte.is_ascii_alphabetic() || *byte == b'_') {
            index += 1;
            continue;
        }
        while bytes.get(index).is_some_and(|byte| is_name(*byte)) {
            index += 1;
        }
        let name = code.get(start..index).unwrap_or_default();
        let name = renamed
            .iter()
            .find(|(other, _)| *other == name)
            .map_or(name, |(_, original)| original);
        let mut open = index;
        while bytes
            .get(open)
            .is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'&'))
        {
            open += 1;
        }
        // elixir: `File.rm_rf!(…)`.
        if bytes.get(open) == Some(&b'!') && bytes.get(open + 1) == Some(&b'(') {
            open += 1;
        }
        let arguments = match bytes.get(open) {
            Some(b'(') => {
                let end = closing(bytes, open);
                code.get(open + 1..end).unwrap_or_default()
            }
            Some(b'\'' | b'"') if open > index => {
                let rest = code.get(open..).unwrap_or_default();
                let end = rest.find([';', '\n']).unwrap_or(rest.len());
                rest.get(..end).unwrap_or_default()
            }
            // perl: `open F, "file"`.
            Some(b'A'..=b'Z' | b'$' | b'm') if name == "open" && open > index => {
                let rest = code.get(open..).unwrap_or_default();
                let end = rest.find([';', '\n']).unwrap_or(rest.len());
                rest.get(..end).unwrap_or_default()
            }
            _ => continue,
        };
        if call_effect(name, arguments).is_some() {
            calls.push(CodeCall { name, arguments });
            if calls.len() >= MAX_CALLS {
                break;
            }
        }
    }
    calls
}

/// The place of the parenthesis that closes the one at `open`.
fn closing(bytes: &[u8], open: usize) -> usize {
    let mut depth = 0usize;
    let mut quote = None;
    let mut index = open;
    while let Some(byte) = bytes.get(index) {
        match (quote, byte) {
            (_, b'\\') => index += 1,
            (Some(open), byte) if open == *byte => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"' | b'`') => quote = Some(*byte),
            (None, b'(') => depth += 1,
            (None, b')') => {
                depth -= 1;
                if depth == 0 {
                    return index;
                }
            }
            _ => {}
        }
        index += 1;
        // Calls are short; a longer text is cut.
        if index > open + 4096 {
            break;
        }
    }
    index.min(bytes.len())
}

/// A string literal at the start and its length in bytes.
fn literal(text: &str) -> Option<(String, usize)> {
    let quote = text
        .chars()
        .next()
        .filter(|quote| matches!(quote, '\'' | '"' | '`'))?;
    let mut value = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, 't')) => value.push('\t'),
                Some((_, other)) => value.push(other),
                None => break,
            },
            _ if character == quote => return Some((value, at + 1)),
            _ => value.push(character),
        }
    }
    None
}

/// `name = 'text'` anywhere in the code.
fn literal_constants(code: &str, home: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices('=').take(MAX_CALLS) {
        let before = code.get(..at).unwrap_or_default().trim_end();
        let start = before
            .rfind(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
            .map_or(0, |found| found + 1);
        let name = before.get(start..).unwrap_or_default();
        let after = code.get(at + 1..).unwrap_or_default().trim_start();
        if name.is_empty() {
            continue;
        }
        let wrapper = identifier(after);
        let inside = after.get(wrapper.len()..).unwrap_or_default();
        let value = match wrapper.rsplit('.').next().unwrap_or_default() {
            "mkdtemp" | "mkdtempSync" | "gettempdir" | "TemporaryDirectory" => {
                Some("/tmp/tmp.code".to_owned())
            }
            "expanduser" | "abspath" | "realpath" | "normpath" | "resolve" | "expandvars" => {
                literal(inside.trim_start_matches('(')).map(|(value, _)| value)
            }
            _ => literal(after).map(|(value, _)| value),
        };
        if let Some(value) = value {
            let value = match value.strip_prefix("~/") {
                Some(rest) => format!("{home}/{rest}"),
                None => value,
            };
            found.push((name.to_owned(), value));
        }
    }
    found
}

/// The values of a call's arguments: literals, known names, and an unknown for
/// what is joined to a literal.
fn call_values(
    call: &CodeCall<'_>,
    constants: &[(String, String)],
    evaluator: &Evaluator<'_>,
    scope: &Scope,
) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    let mut rest = call.arguments;
    let mut joins = false;
    let mut is_keyword = false;
    while let Some(first) = rest.chars().next() {
        if let Some((mut value, length)) = literal(rest) {
            let before = call.arguments.len() - rest.len();
            let prefix = call.arguments.get(..before).unwrap_or_default();
            if prefix.ends_with(['f', 'F']) {
                value = replace_holes(&value, "{", "}");
            }
            value = replace_holes(&value, "${", "}");
            value = replace_holes(&value, "#{", "}");
            if value == "~" || value.starts_with("~/") {
                value = evaluator.home(scope) + value.get(1..).unwrap_or_default();
            }
            if joins {
                if let Some(last) = values.last_mut() {
                    last.push_str(&value);
                }
            } else if !is_keyword {
                values.push(value);
            }
            joins = false;
            rest = rest.get(length..).unwrap_or_default();
            // awk joins adjacent values, perl and php with a dot.
            let next = rest.trim_start();
            let next = next.strip_prefix('.').map_or(next, str::trim_start);
            if next.starts_with('$')
                && let Some(last) = values.last_mut()
            {
                last.push(UNKNOWN);
            }
            continue;
        }
        match first {
            '+' | '%' => {
                joins = !values.is_empty();
                rest = rest.get(1..).unwrap_or_default();
                // A name after it is unknown or a constant.
                let name = identifier(rest.trim_start());
                if joins && !name.is_empty() {
                    let value = constant(name, constants).unwrap_or_else(|| UNKNOWN.to_string());
                    if let Some(last) = values.last_mut() {
                        last.push_str(&value);
                    }
                    joins = false;
                }
            }
            ',' => {
                joins = false;
                is_keyword = false;
                rest = rest.get(1..).unwrap_or_default();
            }
            '=' | ':' => {
                is_keyword = true;
                rest = rest.get(1..).unwrap_or_default();
            }
            _ if first.is_ascii_alphabetic() || first == '_' => {
                let name = identifier(rest);
                let after = rest.get(name.len()..).unwrap_or_default();
                let is_home = ["HOME", "homedir", "Path.home", "USERPROFILE", "home_dir"]
                    .iter()
                    .any(|mark| {
                        name.contains(mark)
                            || after.starts_with(&format!("['{mark}']"))
                            || after.starts_with(&format!("[\"{mark}\"]"))
                    });
                if values.is_empty()
                    && !after.trim_start().starts_with(['=', ':', '\'', '"'])
                    && !is_keyword
                {
                    if is_home {
                        values.push(evaluator.home(scope));
                        joins = true;
                    } else if let Some(value) = constant(name, constants) {
                        values.push(value);
                    } else if !after.starts_with(['(', '[']) && !name.contains('.') {
                        values.push(UNKNOWN.to_string());
                    }
                }
                rest = after;
            }
            _ => rest = rest.get(first.len_utf8()..).unwrap_or_default(),
        }
    }
    values
}

fn identifier(text: &str) -> &str {
    let end = text
        .find(|letter: char| !(letter.is_ascii_alphanumeric() || "_.$".contains(letter)))
        .unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

fn constant(name: &str, constants: &[(String, String)]) -> Option<String> {
    constants
        .iter()
        .find(|(known, _)| known == name)
        .map(|(_, value)| value.clone())
}

fn replace_holes(text: &str, open: &str, close: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(open) {
        out.push_str(rest.get(..at).unwrap_or_default());
        let inside = rest.get(at + open.len()..).unwrap_or_default();
        let Some(end) = inside.find(close) else {
            out.push_str(rest.get(at..).unwrap_or_default());
            return out;
        };
        out.push(UNKNOWN);
        rest = inside.get(end + close.len()..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}
