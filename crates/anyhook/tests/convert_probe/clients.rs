//! How each client picks the hooks for a call and starts them: matchers, shell,
//! variables. Written from what was observed of the clients, without their tables:
//! a mistake there must not be able to hide here. What a client makes of an answer
//! is in its reference model.

use anyhook_testkit::{ProcessOutput, Scratch};
use regex_lite::Regex;
use serde_json::Value;

/// What a matcher means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Matching {
    /// There are no matchers, or they have no effect.
    Ignored,
    /// Names joined by `|` if it has only letters, digits, `_`, `|` and these
    /// characters, else an unanchored regular expression.
    ListOrRegex(&'static str),
    /// An exact name or alias from a list, else an unanchored regular expression.
    NamesOrRegex,
    Regex,
    AnchoredRegex,
    /// `re:` and an anchored regular expression, else a name; letters may be upper
    /// or lower case.
    NameOrMarkedRegex,
    /// As `Regex`; MCP tools only with the prefix `mcp:`, or where everything is meant.
    RegexMcpApart,
}

/// How a command line is started.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    Shell,
    /// The project's folder is put into the text, quoted for a shell.
    ShellWithText,
    /// A shell only for a text with characters of a shell, else split at blanks.
    SplitOrShell,
    /// Split into words, without a shell.
    Words,
}

/// Where a client's payload has what guards read, as nested keys.
pub(crate) struct PayloadKeys {
    pub command: &'static [&'static str],
    pub path: &'static [&'static str],
    /// The key of the tool's name and the name of the shell.
    pub shell: Option<(&'static str, &'static str)>,
}

pub(crate) struct Client {
    pub slug: &'static str,
    matching: Matching,
    start: Start,
    /// Names that a matcher may use for a tool: alias, then the tool's own.
    aliases: &'static [(&'static str, &'static str)],
    /// Variables with the project's folder.
    pub project_variables: &'static [&'static str],
    /// The variable with the tool's name.
    pub tool_variable: Option<&'static str>,
    pub keys: PayloadKeys,
    /// Whether a handler may have `args`, and no shell then.
    pub has_args: bool,
}

const CLAUDE_KEYS: PayloadKeys = PayloadKeys {
    command: &["tool_input", "command"],
    path: &["tool_input", "file_path"],
    shell: Some(("tool_name", "Bash")),
};

const fn keys_with_shell(name: &'static str) -> PayloadKeys {
    PayloadKeys {
        shell: Some(("tool_name", name)),
        ..CLAUDE_KEYS
    }
}

const PLAIN: Client = Client {
    slug: "",
    matching: Matching::Regex,
    start: Start::Shell,
    aliases: &[],
    project_variables: &[],
    tool_variable: None,
    keys: CLAUDE_KEYS,
    has_args: false,
};

pub(crate) const CLIENTS: [Client; 23] = [
    Client {
        slug: "auggie",
        matching: Matching::RegexMcpApart,
        start: Start::SplitOrShell,
        project_variables: &["AUGMENT_PROJECT_DIR"],
        tool_variable: Some("AUGMENT_TOOL_NAME"),
        keys: PayloadKeys {
            path: &["tool_input", "path"],
            ..keys_with_shell("launch-process")
        },
        has_args: true,
        ..PLAIN
    },
    Client {
        slug: "claude-code",
        matching: Matching::ListOrRegex(", -"),
        aliases: &[("Task", "Agent")],
        project_variables: &["CLAUDE_PROJECT_DIR"],
        has_args: true,
        ..PLAIN
    },
    Client {
        slug: "cline",
        matching: Matching::Ignored,
        keys: PayloadKeys {
            command: &["tool_call", "input", "commands"],
            path: &["tool_call", "input", "path"],
            shell: Some(("name", "run_commands")),
        },
        ..PLAIN
    },
    Client {
        slug: "codex",
        matching: Matching::ListOrRegex(""),
        aliases: &[
            ("Write", "apply_patch"),
            ("Edit", "apply_patch"),
            ("Agent", "spawn_agent"),
        ],
        ..PLAIN
    },
    Client {
        slug: "copilot-cli",
        matching: Matching::AnchoredRegex,
        project_variables: &["COPILOT_PROJECT_DIR", "CLAUDE_PROJECT_DIR"],
        keys: PayloadKeys {
            command: &["toolArgs", "command"],
            path: &["toolArgs", "path"],
            shell: Some(("toolName", "bash")),
        },
        ..PLAIN
    },
    Client {
        slug: "cursor",
        project_variables: &["CURSOR_PROJECT_DIR", "CLAUDE_PROJECT_DIR"],
        keys: keys_with_shell("Shell"),
        ..PLAIN
    },
    Client {
        slug: "deepagents-code",
        matching: Matching::ListOrRegex(", -"),
        ..PLAIN
    },
    Client {
        slug: "devin",
        project_variables: &["DEVIN_PROJECT_DIR"],
        keys: keys_with_shell("exec"),
        ..PLAIN
    },
    Client {
        slug: "factory-droid",
        project_variables: &[
            "FACTORY_PROJECT_DIR",
            "DROID_PROJECT_DIR",
            "CLAUDE_PROJECT_DIR",
        ],
        tool_variable: Some("tool_name"),
        keys: keys_with_shell("Execute"),
        ..PLAIN
    },
    Client {
        slug: "gemini-cli",
        start: Start::ShellWithText,
        project_variables: &["GEMINI_PROJECT_DIR", "GEMINI_CWD", "CLAUDE_PROJECT_DIR"],
        keys: keys_with_shell("run_shell_command"),
        ..PLAIN
    },
    Client {
        slug: "grok-build",
        matching: Matching::ListOrRegex(""),
        aliases: &[
            ("Bash", "run_terminal_command"),
            ("Read", "read_file"),
            ("Edit", "search_replace"),
            ("Write", "search_replace"),
            ("MultiEdit", "search_replace"),
            ("Grep", "grep"),
            ("Glob", "list_dir"),
            ("ListDir", "list_dir"),
            ("WebSearch", "web_search"),
            ("Task", "spawn_subagent"),
        ],
        project_variables: &["GROK_WORKSPACE_ROOT", "CLAUDE_PROJECT_DIR"],
        keys: keys_with_shell("run_terminal_command"),
        ..PLAIN
    },
    Client {
        slug: "hermes-agent",
        matching: Matching::AnchoredRegex,
        start: Start::Words,
        keys: PayloadKeys {
            path: &["tool_input", "path"],
            ..keys_with_shell("terminal")
        },
        ..PLAIN
    },
    Client {
        slug: "kilo",
        keys: PayloadKeys {
            command: &["output", "args", "command"],
            path: &["output", "args", "filePath"],
            shell: Some(("tool", "bash")),
        },
        ..PLAIN
    },
    Client {
        slug: "kimi-code",
        keys: PayloadKeys {
            path: &["tool_input", "path"],
            ..CLAUDE_KEYS
        },
        ..PLAIN
    },
    Client {
        slug: "kiro",
        keys: PayloadKeys {
            path: &["tool_input", "path"],
            ..keys_with_shell("execute_bash")
        },
        ..PLAIN
    },
    Client {
        slug: "mistral-vibe",
        matching: Matching::NameOrMarkedRegex,
        aliases: &[
            ("bash", "file_system.bash"),
            ("file_system_bash", "file_system.bash"),
            ("read_file", "file_system.read_file"),
            ("write_file", "file_system.write_file"),
            ("edit", "file_system.edit"),
        ],
        keys: keys_with_shell("file_system.bash"),
        ..PLAIN
    },
    Client {
        slug: "opencode",
        keys: PayloadKeys {
            command: &["output", "args", "command"],
            path: &["output", "args", "filePath"],
            shell: Some(("tool", "bash")),
        },
        ..PLAIN
    },
    Client {
        slug: "openhands",
        matching: Matching::AnchoredRegex,
        project_variables: &["OPENHANDS_PROJECT_DIR"],
        tool_variable: Some("OPENHANDS_TOOL_NAME"),
        keys: PayloadKeys {
            path: &["tool_input", "path"],
            ..keys_with_shell("terminal")
        },
        ..PLAIN
    },
    Client {
        slug: "pi",
        keys: PayloadKeys {
            command: &["input", "command"],
            path: &["input", "path"],
            shell: Some(("toolName", "bash")),
        },
        ..PLAIN
    },
    Client {
        slug: "qoder",
        matching: Matching::ListOrRegex(", -"),
        project_variables: &["QODER_PROJECT_DIR"],
        ..PLAIN
    },
    Client {
        slug: "qwen-code",
        matching: Matching::NamesOrRegex,
        aliases: &[
            ("Bash", "run_shell_command"),
            ("Shell", "run_shell_command"),
            ("Read", "read_file"),
            ("Write", "write_file"),
            ("Edit", "edit"),
            ("replace", "edit"),
            ("NotebookEdit", "notebook_edit"),
            ("Grep", "grep_search"),
            ("Glob", "glob"),
            ("WebFetch", "web_fetch"),
            ("WebSearch", "web_search"),
            ("Task", "agent"),
            ("Agent", "agent"),
            ("TodoWrite", "todo_write"),
        ],
        project_variables: &[
            "QWEN_PROJECT_DIR",
            "GEMINI_PROJECT_DIR",
            "CLAUDE_PROJECT_DIR",
        ],
        keys: keys_with_shell("run_shell_command"),
        ..PLAIN
    },
    Client {
        slug: "vs-code-copilot",
        matching: Matching::Ignored,
        keys: PayloadKeys {
            path: &["tool_input", "filePath"],
            ..keys_with_shell("run_in_terminal")
        },
        ..PLAIN
    },
    Client {
        slug: "windsurf",
        matching: Matching::Ignored,
        keys: PayloadKeys {
            command: &["tool_info", "command_line"],
            path: &["tool_info", "file_path"],
            shell: None,
        },
        ..PLAIN
    },
];

/// Names of tools in the events that Copilot CLI has for Claude's hooks.
const CLAUDE_NAMES: [(&str, &str); 8] = [
    ("bash", "Bash"),
    ("view", "Read"),
    ("create", "Write"),
    ("edit", "Edit"),
    ("grep", "Grep"),
    ("glob", "Glob"),
    ("task", "Agent"),
    ("web_fetch", "WebFetch"),
];

pub(crate) fn client(slug: &str) -> &'static Client {
    CLIENTS.iter().find(|client| client.slug == slug).unwrap()
}

/// Claude's name for a tool of Copilot CLI.
pub(crate) fn claude_name(tool: &str) -> &str {
    let mut names = CLAUDE_NAMES.iter();
    names
        .find(|(own, _)| *own == tool)
        .map_or(tool, |(_, name)| name)
}

/// What a client tests a matcher against.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subject {
    pub tool: String,
    pub is_mcp: bool,
    pub command: String,
}

fn is_match(pattern: &str, text: &str) -> bool {
    // An invalid one matches nothing.
    Regex::new(pattern).is_ok_and(|regex| regex.is_match(text))
}

impl Client {
    pub(crate) fn fires(&self, event: &str, matcher: Option<&str>, subject: &Subject) -> bool {
        let matcher = match matcher {
            None | Some("") => return true,
            Some("*") if self.slug != "auggie" && event != "preToolUse" => return true,
            Some("*") if self.slug != "auggie" && self.slug != "copilot-cli" => return true,
            Some(matcher) => matcher,
        };
        let tool = subject.tool.as_str();
        if event == "beforeShellExecution" {
            return is_match(matcher, &subject.command);
        }
        if event == "beforeReadFile" {
            return true;
        }
        if self.slug == "copilot-cli" && event == "PreToolUse" {
            let named = claude_name(tool);
            let is_list = |letter: char| letter.is_ascii_alphanumeric() || "_|-".contains(letter);
            return if matcher.chars().all(is_list) {
                matcher.split('|').any(|name| name == tool || name == named)
            } else {
                is_match(&format!("^(?:{matcher})$"), named)
            };
        }
        let aliases = self.aliases.iter();
        let aliases = aliases
            .filter(|(_, own)| *own == tool)
            .map(|(alias, _)| *alias);
        let mut names = std::iter::once(tool).chain(aliases);
        match self.matching {
            Matching::Ignored => true,
            Matching::ListOrRegex(more) => {
                let listed = |letter: char| {
                    letter.is_ascii_alphanumeric() || "_|".contains(letter) || more.contains(letter)
                };
                if matcher.chars().all(listed) {
                    let separators: &[char] = if more.contains(',') {
                        &['|', ',']
                    } else {
                        &['|']
                    };
                    let listed: Vec<&str> = matcher.split(separators).map(str::trim).collect();
                    names.any(|name| listed.contains(&name))
                } else {
                    names.any(|name| is_match(matcher, name))
                }
            }
            Matching::NamesOrRegex => {
                matcher == ".*"
                    || names.any(|name| matcher.split('|').any(|one| one.trim() == name))
                    || is_match(matcher, tool)
            }
            Matching::Regex => matcher == tool || is_match(matcher, tool),
            Matching::AnchoredRegex => is_match(&format!("^(?:{matcher})$"), tool),
            Matching::NameOrMarkedRegex => match matcher.strip_prefix("re:") {
                Some(pattern) => names.any(|name| is_match(&format!("(?i)^(?:{pattern})$"), name)),
                None => names.any(|name| name.eq_ignore_ascii_case(matcher)),
            },
            Matching::RegexMcpApart => match (subject.is_mcp, matcher.strip_prefix("mcp:")) {
                _ if matcher == ".*" => true,
                (true, Some("*")) => true,
                (true, Some(pattern)) => is_match(pattern, tool),
                (true, None) | (false, Some(_)) => false,
                (false, None) => is_match(matcher, tool),
            },
        }
    }

    /// The variables that the client gives to its hooks.
    fn variables(&self, project: &str, tool: &str) -> Vec<(&'static str, String)> {
        let folders = self.project_variables.iter();
        let folders = folders.map(|name| (*name, project.to_owned()));
        let tool = self.tool_variable.map(|name| (name, tool.to_owned()));
        folders.chain(tool).collect()
    }

    /// The program and the arguments that the client starts for a handler.
    fn arguments(&self, handler: &Value, variables: &[(&'static str, String)]) -> Vec<String> {
        let text = |key: &str| handler.get(key).and_then(Value::as_str);
        let args = handler.get("args").and_then(Value::as_array);
        let args = args.map(|args| args.iter().map(|one| one.as_str().unwrap().to_owned()));
        let expand = |mut text: String, forms: &[&str]| {
            for (name, value) in variables {
                for form in forms {
                    text = text.replace(&form.replace("NAME", name), value);
                }
            }
            text
        };
        let in_shell = |line: String| vec!["sh".to_owned(), "-c".to_owned(), line];
        if let Some(program) = text("exec") {
            return std::iter::once(program.to_owned())
                .chain(args.into_iter().flatten())
                .collect();
        }
        // On Linux and macOS, where an entry has a command of its own for them.
        let line = text(if cfg!(target_os = "macos") {
            "osx"
        } else {
            "linux"
        });
        let line = line
            .or(text("bash"))
            .or(text("command"))
            .unwrap_or_default()
            .to_owned();
        if self.has_args
            && let Some(args) = args
        {
            let all = std::iter::once(line).chain(args);
            return all.map(|one| expand(one, &["${NAME}"])).collect();
        }
        match self.start {
            Start::Shell => in_shell(line),
            Start::Words => split_at_blanks(&line),
            Start::ShellWithText => in_shell(expand(line, &["${NAME}", "$NAME"])),
            Start::SplitOrShell => {
                let line = expand(line, &["${NAME}"]);
                if line.contains(['|', '&', ';', '>', '<', '$', '`']) || line.starts_with('~') {
                    in_shell(line)
                } else {
                    split_at_blanks(&line)
                }
            }
        }
    }

    /// Starts a handler as the client would.
    pub(crate) fn start(
        &self,
        scratch: &Scratch,
        handler: &Value,
        tool: &str,
        payload: &str,
    ) -> ProcessOutput {
        let project = scratch.project();
        let variables = self.variables(project.to_str().unwrap(), tool);
        let arguments = self.arguments(handler, &variables);
        let Some((program, rest)) = arguments.split_first() else {
            return failed("there is no command");
        };
        let folder = handler.get("cwd").or(handler.get("working_directory"));
        let folder = folder.and_then(Value::as_str).unwrap_or(".");
        let mut command = scratch.command(program).dir(project.join(folder));
        for (name, value) in &variables {
            command = command.env(name, value);
        }
        let own = handler.get("env").and_then(Value::as_object);
        for (name, value) in own.into_iter().flatten() {
            command = command.env(name, value.as_str().unwrap_or_default());
        }
        command
            .run(rest, payload)
            .unwrap_or_else(|error| failed(&error.to_string()))
    }
}

/// What a shell leaves behind when it cannot start a program.
fn failed(why: &str) -> ProcessOutput {
    ProcessOutput {
        exit: Some(127),
        stdout: String::new(),
        stderr: why.to_owned(),
    }
}

/// Words by blanks; either kind of quotes keeps blanks together.
fn split_at_blanks(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in line.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            None if letter == '"' || letter == '\'' => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}
