//! One-liners of interpreters: the shell calls and the plain file operations in
//! them. Not a parser of those languages: calls by name with literal arguments.

mod calls;
mod interpreters;
mod rewriting;

use std::borrow::Cow;

use super::evaluate::{Evaluator, MAX_WRAPPERS, Scope, StageInput};
use super::invocation::{Invocation, ResolvedWord, UNKNOWN};
pub(super) use calls::literals;
use calls::{
    between, call_values, find_calls, identifier, literal, literal_constants, literal_lists,
};
use interpreters::{interpreter_code, python_module};
use rewriting::{
    decode_literals, expand_word_lists, join_paths, name_home_folder, name_required_modules,
};

/// Calls that are looked at in one text.
const MAX_CALLS: usize = 64;

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
        | "Command"
        | "start_process"
        | "shelljs.exec"
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
        "glob" | "walk" | "rglob" | "iglob" | "scandir" | "listdir" | "readdirSync" => {
            CallEffect::List
        }
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

/// The code with its prose left out: string literals of several words. What those of
/// them hold that run is judged as a command of its own.
pub(crate) fn without_prose(code: &str) -> String {
    let mut plain = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find(['\'', '"']) {
        plain.push_str(rest.get(..at).unwrap_or_default());
        rest = rest.get(at..).unwrap_or_default();
        let length = match literal(rest) {
            Some((text, length)) => {
                if !text.trim().contains([' ', '\n']) {
                    plain.push_str(rest.get(..length).unwrap_or_default());
                }
                length
            }
            None => 1,
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    plain.push_str(rest);
    plain
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
        evaluator.file_text(file, scope)
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

fn run_code(evaluator: &mut Evaluator<'_>, code: &str, interpreter: &str, scope: &Scope) {
    let listed = match interpreter {
        "perl" => expand_word_lists(code),
        "php" => Cow::Owned(name_home_folder(code, &evaluator.home(scope))),
        _ => Cow::Borrowed(code),
    };
    let listed = decode_literals(&listed);
    let plain = name_required_modules(&listed);
    let plain = join_paths(&plain, &evaluator.home(scope));
    let code = plain.as_str();
    let constants = literal_constants(code, &evaluator.home(scope));
    let mut scripts: Vec<String> = Vec::new();
    // A call that runs what the code holds in another place.
    let mut is_unclear = false;
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
                is_unclear |= [
                    ".join(",
                    "chr(",
                    ".split(",
                    ".format(",
                    "[::-1]",
                    ".replace(",
                ]
                .iter()
                .any(|mark| call.arguments.contains(mark));
                is_unclear |= values
                    .iter()
                    .all(|value| value.chars().all(|letter| letter == UNKNOWN));
                let is_list = call.arguments.contains('[') || values.len() > 1;
                match values.as_slice() {
                    [] => {}
                    [first, ..] if !is_list || first.contains(' ') => scripts.push(first.clone()),
                    // `sh -c script` in a list, or a program with its arguments.
                    // The second one is the name that the program sees: `execlp('git', 'git', …)`.
                    [program, name] if program == name => scripts.push(program.clone()),
                    [program, name, rest @ ..] if program == name => {
                        let words = std::iter::once(program).chain(rest);
                        commands.push(words.map(ResolvedWord::new).collect());
                    }
                    [program] if !program.chars().all(|letter| letter == UNKNOWN) => {
                        scripts.push(program.clone());
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
                    "File.delete(",
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
                    (
                        "rglob(",
                        if code.contains(".unlink") {
                            &["rm", "-r"]
                        } else {
                            &["ls"]
                        },
                    ),
                    (
                        "iterdir(",
                        if code.contains(".unlink") {
                            &["rm", "-r"]
                        } else {
                            &["ls"]
                        },
                    ),
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
    is_unclear |= ["system $", "exec $", "system @", "exec @"]
        .iter()
        .any(|mark| code.contains(mark));
    if is_unclear {
        for words in literal_lists(code) {
            match words.as_slice() {
                [program] => scripts.push(program.clone()),
                words => commands.push(words.iter().map(ResolvedWord::new).collect()),
            }
        }
    }
    if is_unclear || calls_by_name(code) {
        // Which function gets a text is not known, so that each may be a command.
        let texts = literals(code).into_iter();
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
        let open = mark.chars().last().unwrap_or(close);
        scripts.extend(code.split(mark).skip(1).filter_map(|rest| {
            // Braces of the command itself are balanced.
            let mut depth = 1usize;
            let end = rest.char_indices().find_map(|(at, letter)| {
                if letter == close {
                    depth -= 1;
                } else if letter == open {
                    depth += 1;
                }
                (depth == 0).then_some(at)
            });
            rest.get(..end.or_else(|| rest.find(close))?)
                .map(str::to_owned)
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
    // Languages in which a text before or after a name runs.
    if matches!(
        interpreter,
        "guile" | "racket" | "sbcl" | "clojure" | "bb" | "raku" | "ghc" | "scala" | "kotlin"
    ) {
        let texts = literals(code).into_iter();
        scripts.extend(texts.filter(|text| text.trim().contains(' ')));
    }
    if interpreter == "ipython" {
        let lines = code.lines().map(str::trim_start);
        scripts.extend(lines.filter_map(|line| line.strip_prefix('!').map(str::to_owned)));
    }
    if interpreter == "groovy" {
        // `"cmd".execute()`.
        if code.contains(".execute(") {
            scripts.extend(literals(code));
        }
    }
    if interpreter == "osascript" {
        let parts = code.split("do shell script").skip(1);
        scripts.extend(parts.filter_map(|rest| literal(rest.trim_start()).map(|(text, _)| text)));
    }
    if matches!(interpreter, "expect" | "tclsh" | "wish") {
        // Their words are those of a shell, nearly.
        let starts = ["spawn ", "exec ", "system "];
        scripts.extend(starts.iter().flat_map(|start| {
            let calls = code.match_indices(start).filter(|(at, _)| {
                let before = code.get(..*at).unwrap_or_default().trim_end_matches(' ');
                before.is_empty() || before.ends_with(['{', '[', ';', '\n'])
            });
            calls.map(|(at, _)| code.get(at + start.len()..).unwrap_or_default().to_owned())
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
        let runs = ["getline", "sh\"", "bash\"", "/bin/sh\""];
        let is_piped = code.split('|').skip(1).any(|after| {
            let after = after.trim_start().trim_start_matches('"');
            runs.iter().any(|reader| after.starts_with(reader))
        });
        if is_piped {
            scripts.extend(literals(code));
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
