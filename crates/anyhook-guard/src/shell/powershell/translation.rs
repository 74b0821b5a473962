//! The POSIX relatives of commands and methods.

use super::OpenCommand;
use crate::shell::invocation::{ResolvedWord, program_name};

/// What a block of this command is run for: the members of a listing.
pub(super) fn each_of(command: &OpenCommand) -> std::ops::Range<usize> {
    let is_loop = command.words.first().is_some_and(|word| {
        matches!(
            word.text.to_ascii_lowercase().as_str(),
            "%" | "foreach-object" | "foreach"
        )
    });
    if is_loop && !command.from.is_empty() {
        command.from.clone()
    } else {
        command.each.clone()
    }
}

/// The POSIX relative of a static method that uses files, and its operands.
fn file_method(lower: &str) -> Option<(&'static str, usize)> {
    let (class, method) = lower.split_once("]::")?;
    if !class.contains("file") && !class.contains("directory") {
        return None;
    }
    Some(match method {
        "readalltext" | "readalllines" | "readallbytes" | "openread" | "opentext" => ("cat", 1),
        "writealltext" | "writealllines" | "writeallbytes" | "appendalltext" | "create"
        | "openwrite" => ("tee", 1),
        "delete" => ("rm", 1),
        "move" => ("mv", 2),
        "copy" => ("cp", 2),
        _ => return None,
    })
}

const START_PROCESS_OPTIONS: &[&str] = &[
    "-args",
    "-argumentlist",
    "-filepath",
    "-nonewwindow",
    "-passthru",
    "-wait",
];

/// The POSIX relative of a command, with its words in that order.
pub(super) fn translate(
    lower: &str,
    name: &str,
    words: Vec<ResolvedWord>,
) -> (String, Vec<ResolvedWord>) {
    let target = match lower {
        "remove-item" | "rm" | "del" | "erase" | "rd" | "rmdir" | "ri" => "rm",
        "clear-content" | "clc" => "tee",
        "get-content" | "gc" | "type" | "cat" | "select-string" | "sls" => "cat",
        "set-content" | "add-content" | "out-file" | "sc" | "ac" | "new-item" | "ni"
        | "tee-object" | "tee" => "tee",
        "move-item" | "mi" | "mv" | "move" | "rename-item" | "rni" | "ren" => "mv",
        "copy-item" | "ci" | "cpi" | "cp" | "copy" => "cp",
        "invoke-webrequest" | "iwr" | "invoke-restmethod" | "irm" | "wget" | "curl"
        | "start-bitstransfer" => "curl",
        "invoke-expression" | "iex" | "[scriptblock]::create" => "eval",
        "get-childitem" | "gci" | "dir" | "ls" => {
            let variable = words.iter().find_map(|word| {
                let (drive, name) = word.text.split_once(':')?;
                drive.eq_ignore_ascii_case("env").then(|| name.to_owned())
            });
            if let Some(variable) = variable {
                let variable = variable
                    .trim_start_matches(['\\', '/'])
                    .to_ascii_uppercase();
                let is_one = !variable.is_empty() && !variable.contains(['*', '?', '[']);
                let mut printed = vec![ResolvedWord::new("printenv")];
                printed.extend(is_one.then(|| ResolvedWord::new(variable)));
                return ("printenv".to_owned(), printed);
            }
            "ls"
        }
        "get-item" | "gi" | "get-itemproperty" | "gp" => {
            let name_given = name;
            let name = words.iter().skip(1).find_map(|word| {
                let (drive, name) = word.text.split_once(':')?;
                drive.eq_ignore_ascii_case("env").then(|| name.to_owned())
            });
            let Some(name) = name else {
                return (name_given.to_owned(), words);
            };
            let variable = name.trim_start_matches(['\\', '/']).to_ascii_uppercase();
            let mut printed = vec![ResolvedWord::new("printenv")];
            if !variable.contains('*') {
                printed.push(ResolvedWord::new(variable));
            }
            return ("printenv".to_owned(), printed);
        }
        "compress-archive" => "tar",
        "format-volume" | "clear-disk" | "initialize-disk" | "remove-partition" => "mkfs",
        "stop-computer" | "restart-computer" => "shutdown",
        "set-location" | "sl" | "cd" | "push-location" | "pushd" => "cd",
        _ if lower.contains("getenvironmentvariable") => {
            let mut printed = words;
            printed.truncate(if lower.contains("getenvironmentvariables") {
                1
            } else {
                2
            });
            if let Some(first) = printed.first_mut() {
                *first = ResolvedWord::new("printenv");
            }
            return ("printenv".to_owned(), printed);
        }
        _ if lower.contains("]::") && file_method(lower).is_some() => {
            let (program, operands) = file_method(lower).unwrap_or(("cat", 1));
            let mut translated = vec![ResolvedWord::new(program)];
            if program == "rm" && lower.contains("directory") {
                translated.push(ResolvedWord::new("-r"));
            }
            translated.extend(words.into_iter().skip(1).take(operands));
            return (program.to_owned(), translated);
        }
        "start-process" | "saps" => {
            let rest: Vec<ResolvedWord> = words
                .into_iter()
                .skip(1)
                .filter(|word| {
                    let option = word.text.to_ascii_lowercase();
                    !START_PROCESS_OPTIONS.contains(&option.as_str())
                        && !matches!(option.as_str(), "runas" | "hidden")
                })
                .flat_map(|word| {
                    // One text with all arguments.
                    let parts: Vec<ResolvedWord> = word
                        .text
                        .split_whitespace()
                        .map(|part| ResolvedWord {
                            text: part.to_owned(),
                            ..word.clone()
                        })
                        .collect();
                    parts
                })
                .collect();
            let name = rest
                .first()
                .map(|word| program_name(&word.text))
                .unwrap_or_default();
            return (name, rest);
        }
        _ if lower.contains("downloadstring")
            || lower.contains("downloadfile")
            || lower.contains("downloaddata") =>
        {
            "curl"
        }
        _ => return (name.to_owned(), words),
    };
    let mut translated = vec![ResolvedWord::new(target)];
    let mut skips_value = false;
    let mut operands = 0;
    for word in words.into_iter().skip(1) {
        let option = word.text.to_ascii_lowercase();
        if std::mem::take(&mut skips_value) {
            continue;
        }
        if !option.starts_with('-') {
            operands += 1;
            // `Start-BitsTransfer source destination`.
            if operands == 2 && lower == "start-bitstransfer" {
                translated.push(ResolvedWord::new("-o"));
            }
            translated.push(word);
            continue;
        }
        match option.as_str() {
            _ if target == "curl"
                && option.len() > 1
                && ("-outfile".starts_with(&option) || "-destination" == option) =>
            {
                translated.push(ResolvedWord::new("-o"));
                operands = 2;
            }
            // A file that is sent.
            "-infile" if target == "curl" => translated.push(ResolvedWord::new("-T")),
            "-filter" | "-include" | "-exclude" if target == "ls" => {
                translated.push(ResolvedWord::new("--filtered"));
                skips_value = true;
            }
            _ if target == "ls" && option.len() > 1 && "-recurse".starts_with(&option) => {
                translated.push(ResolvedWord::new("-r"));
            }
            // cmdlets accept any unambiguous start of an option.
            _ if target == "rm" && option.len() > 1 && "-recurse".starts_with(&option) => {
                translated.push(ResolvedWord::new("-r"));
            }
            _ if target == "rm" && option.len() > 1 && "-force".starts_with(&option) => {
                translated.push(ResolvedWord::new("-f"));
            }
            "-rf" | "-fr" if target == "rm" => translated.push(ResolvedWord::new("-rf")),
            "-filter" | "-include" | "-exclude" | "-encoding" | "-erroraction" | "-ea"
            | "-itemtype" | "-type" | "-value" | "-pattern" | "-headers" | "-method"
            | "-contenttype" | "-useragent" => skips_value = true,
            _ => {}
        }
    }
    (target.to_owned(), translated)
}
