//! Programs that run a script which they are given, or else what they read.

const INTERPRETERS: [&str; 18] = [
    "bash",
    "bun",
    "cmd",
    "dash",
    "deno",
    "fish",
    "ksh",
    "node",
    "nodejs",
    "perl",
    "php",
    "powershell",
    "pwsh",
    "python",
    "python3",
    "ruby",
    "sh",
    "zsh",
];

/// Whether a program, by name or path, is an interpreter.
pub fn is_interpreter(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let unversioned =
        name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    [name, unversioned]
        .iter()
        .any(|name| INTERPRETERS.contains(name))
}

/// Whether code follows this argument of an interpreter.
pub fn is_inline(argument: &str) -> bool {
    matches!(
        argument.to_ascii_lowercase().as_str(),
        "-c" | "-e" | "-ec" | "-lc" | "--eval" | "-command" | "/c" | "eval"
    )
}

/// Whether a command is an interpreter without a script or code. It would run the
/// event on its input as a script, and with it text of the model.
pub fn runs_its_input(command: &str, args: Option<&[String]>) -> bool {
    let mut words: Vec<&str> = match args {
        Some(_) => vec![command.trim()],
        None => command.split_whitespace().collect(),
    };
    words.extend(args.into_iter().flatten().map(String::as_str));
    let Some((program, arguments)) = words.split_first() else {
        return false;
    };
    let is_option = |word: &&str| word.starts_with('-') && !is_inline(word);
    is_interpreter(program) && arguments.iter().all(is_option)
}

#[cfg(test)]
mod tests {
    use super::runs_its_input;

    #[test]
    fn an_interpreter_needs_a_script() {
        for bare in ["bash", " /bin/sh ", "python3.12 -u", "node -", "bash -s"] {
            assert!(runs_its_input(bare, None), "{bare}");
        }
        for fine in [
            "bash x.sh",
            "sh -c 'exit 2'",
            "python3 -m guard",
            "./guard.sh",
            "cat",
            "",
        ] {
            assert!(!runs_its_input(fine, None), "{fine}");
        }
        let args = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        assert!(runs_its_input("bash", Some(&[])));
        assert!(runs_its_input("bash", Some(&args(&["-x"]))));
        assert!(!runs_its_input("bash", Some(&args(&["guard.sh"]))));
    }
}
