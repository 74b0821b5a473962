//! A word-level reading of cmd.exe. Commands with a POSIX relative get its name.

use super::evaluate::{Evaluator, Scope, StageInput};
use super::invocation::{Invocation, ResolvedRedirect, ResolvedWord, UNKNOWN, program_name};
use super::syntax::RedirectKind;

pub(super) fn run(evaluator: &mut Evaluator<'_>, text: &str, scope: &Scope) {
    let mut scope = scope.clone();
    let mut words: Vec<ResolvedWord> = Vec::new();
    let mut redirects = Vec::new();
    let mut redirect = None;
    let mut word: Option<ResolvedWord> = None;
    let mut from = 0..0;
    let mut in_quotes = false;
    let mut characters = text.chars().peekable();
    loop {
        evaluator.spend(1);
        if evaluator.is_exhausted() {
            return;
        }
        let character = characters.next();
        let is_blank = matches!(character, Some(' ' | '\t' | ',' | '(' | ')' | '\r')) && !in_quotes;
        let is_end =
            matches!(character, None | Some('&' | '|' | '\n')) && !in_quotes || character.is_none();
        if is_blank || is_end || (character == Some('>') && !in_quotes) {
            if let Some(mut word) = word.take() {
                // One kind of separator in a path that has both.
                if word.text.starts_with('/') && word.text.contains('\\') {
                    word.text = word.text.replace('\\', "/");
                }
                match redirect.take() {
                    Some(kind) => redirects.push(ResolvedRedirect { kind, target: word }),
                    None => words.push(word),
                }
            }
            if character == Some('>') {
                let appends = characters.next_if_eq(&'>').is_some();
                if characters.next_if_eq(&'&').is_some() {
                    characters.next();
                } else {
                    redirect = Some(if appends {
                        RedirectKind::Append
                    } else {
                        RedirectKind::Output
                    });
                }
            }
            if is_end {
                let start = evaluator.invocations.len();
                let command = (std::mem::take(&mut words), std::mem::take(&mut redirects));
                start_command(evaluator, command, from.clone(), &mut scope);
                let is_pipe = character == Some('|') && characters.next_if_eq(&'|').is_none();
                from = if is_pipe {
                    start..evaluator.invocations.len()
                } else {
                    0..0
                };
            }
            if character.is_none() {
                return;
            }
            continue;
        }
        let Some(character) = character else {
            return;
        };
        match character {
            '^' if !in_quotes => {
                if let Some(next) = characters.next()
                    && next != '\n'
                {
                    word.get_or_insert_default().text.push(next);
                }
            }
            '"' => {
                in_quotes = !in_quotes;
                word.get_or_insert_default();
            }
            '%' => {
                let mut name = String::new();
                while let Some(next) =
                    characters.next_if(|next| next.is_alphanumeric() || *next == '_')
                {
                    name.push(next);
                }
                let is_variable = characters.next_if_eq(&'%').is_some();
                let value = match name.to_ascii_lowercase().as_str() {
                    _ if !is_variable => UNKNOWN.to_string(),
                    "userprofile" | "homepath" | "home" => evaluator.home(&scope),
                    "temp" | "tmp" => "/tmp/user".to_owned(),
                    "systemroot" | "windir" => "C:/Windows".to_owned(),
                    "systemdrive" => "C:".to_owned(),
                    "programfiles" => "C:/Program Files".to_owned(),
                    "comspec" => "cmd".to_owned(),
                    "cd" => scope.cwd.clone().unwrap_or_else(|| UNKNOWN.to_string()),
                    _ => {
                        let word = word.get_or_insert_default();
                        word.variables.push(name.to_ascii_uppercase());
                        UNKNOWN.to_string()
                    }
                };
                word.get_or_insert_default().text.push_str(&value);
            }
            _ => {
                let word = word.get_or_insert_default();
                word.text.push(character);
                word.is_pattern |= matches!(character, '*' | '?');
            }
        }
    }
}

type CommandParts = (Vec<ResolvedWord>, Vec<ResolvedRedirect>);

fn start_command(
    evaluator: &mut Evaluator<'_>,
    command: CommandParts,
    from: std::ops::Range<usize>,
    scope: &mut Scope,
) {
    let (mut words, redirects) = command;
    // `if exist x command`, `for %i in (…) do command`.
    let first = words
        .first()
        .map(|word| word.text.to_ascii_lowercase())
        .unwrap_or_default();
    match first.as_str() {
        "for" => {
            read_listed_files(evaluator, &words, scope);
            if let Some(at) = words
                .iter()
                .position(|word| word.text.eq_ignore_ascii_case("do"))
            {
                words.drain(..=at);
            }
        }
        "if" => {
            let mut skipped = 1;
            if words
                .get(skipped)
                .is_some_and(|word| word.text.eq_ignore_ascii_case("not"))
            {
                skipped += 1;
            }
            skipped += if words
                .get(skipped)
                .is_some_and(|word| word.text.eq_ignore_ascii_case("exist"))
            {
                2
            } else {
                1
            };
            words.drain(..skipped.min(words.len()));
        }
        "call" | "@echo" => {
            words.remove(0);
        }
        // `start "title" /b program`.
        "start" => {
            words.remove(0);
            while words
                .first()
                .is_some_and(|word| word.text.starts_with('/') || word.text.is_empty())
            {
                words.remove(0);
            }
        }
        _ => {}
    }
    split_attached_flags(&mut words);
    let Some(first) = words.first() else {
        return;
    };
    let name = program_name(first.text.trim_start_matches('@'));
    let lower = name.to_ascii_lowercase();
    let flags: Vec<String> = words
        .iter()
        .skip(1)
        .filter(|word| word.text.starts_with('/'))
        .map(|word| word.text.to_ascii_lowercase())
        .collect();
    let operands = || {
        words
            .iter()
            .skip(1)
            .filter(|word| {
                !(word.text.starts_with('/') && word.text.len() <= 3 && !word.text.ends_with('/'))
            })
            .cloned()
    };
    let mut started = Invocation {
        redirects,
        input_from: from.clone(),
        ..Invocation::in_scope(scope)
    };
    let mut emit =
        |evaluator: &mut Evaluator<'_>, program: &[&str], operands: Vec<ResolvedWord>| {
            let mut words: Vec<ResolvedWord> = program
                .iter()
                .map(|word| ResolvedWord::new(*word))
                .collect();
            words.extend(operands);
            started.name = program
                .first()
                .map_or_else(String::new, |name| (*name).to_owned());
            started.words = words;
            evaluator.emit(started.clone());
        };
    let is_recursive = flags.iter().any(|flag| flag.starts_with("/s"));
    match lower.as_str() {
        "rd" | "rmdir" | "del" | "erase" => {
            let program: &[&str] = if is_recursive {
                &["rm", "-rf"]
            } else {
                &["rm", "-f"]
            };
            emit(evaluator, program, operands().collect());
        }
        "type" | "more" => emit(evaluator, &["cat"], operands().collect()),
        // The text to look for comes first.
        "findstr" | "find" => emit(evaluator, &["cat"], operands().skip(1).collect()),
        "robocopy"
            if flags
                .iter()
                .any(|flag| matches!(flag.as_str(), "/mir" | "/purge")) =>
        {
            let folders = operands()
                .filter(|word| !word.text.starts_with('/'))
                .take(2);
            emit(evaluator, &["rsync", "-a", "--delete"], folders.collect());
        }
        "copy" | "xcopy" | "robocopy" => emit(evaluator, &["cp"], operands().collect()),
        "move" | "ren" | "rename" => emit(evaluator, &["mv"], operands().collect()),
        "format" | "diskpart" | "cipher" => emit(evaluator, &["mkfs"], operands().collect()),
        "set" if words.len() == 1 => emit(evaluator, &["printenv"], Vec::new()),
        "cd" | "chdir" | "pushd" => {
            let target = operands().next().map(|word| word.text).unwrap_or_default();
            scope.cwd = crate::paths::normalize(scope.cwd.as_deref(), &target);
        }
        _ => {
            let text = super::output::known_output(&evaluator.invocations, from.clone());
            let input = StageInput {
                text: text.map(Into::into),
                from,
            };
            let started = Invocation {
                name: String::new(),
                words: Vec::new(),
                ..started
            };
            evaluator.start(words, started, &mut scope.clone(), &input);
        }
    }
}

/// `rd/s/q folder`: options that follow the command without a blank.
fn split_attached_flags(words: &mut Vec<ResolvedWord>) {
    let Some(first) = words.first() else {
        return;
    };
    let mut parts = first.text.split('/');
    let program = parts.next().unwrap_or_default().to_ascii_lowercase();
    if !matches!(
        program.as_str(),
        "rd" | "rmdir" | "del" | "erase" | "cmd" | "format" | "type" | "copy" | "move" | "cd"
    ) {
        return;
    }
    let flags: Vec<ResolvedWord> = parts
        .map(|flag| ResolvedWord::new(format!("/{flag}")))
        .collect();
    words.splice(
        ..1,
        std::iter::once(ResolvedWord::new(program)).chain(flags),
    );
}

/// `for /f %i in (file) do …` reads the file.
fn read_listed_files(evaluator: &mut Evaluator<'_>, words: &[ResolvedWord], scope: &Scope) {
    let reads = words
        .get(1)
        .is_some_and(|word| word.text.eq_ignore_ascii_case("/f"));
    let position = |name: &str| {
        words
            .iter()
            .position(|word| word.text.eq_ignore_ascii_case(name))
    };
    let (true, Some(start), Some(end)) = (reads, position("in"), position("do")) else {
        return;
    };
    let files = words.get(start + 1..end).unwrap_or_default();
    // A text in quotes is a command.
    if files.iter().any(|word| word.text.starts_with('\'')) {
        return;
    }
    let mut read = vec![ResolvedWord::new("cat")];
    read.extend(files.iter().cloned());
    evaluator.emit(Invocation {
        name: "cat".to_owned(),
        words: read,
        ..Invocation::in_scope(scope)
    });
}
