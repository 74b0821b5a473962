//! Files that a script of sed or awk names itself.

use super::Access;

/// Files that a script of sed or awk names itself: `w FILE`, `print > "FILE"`.
pub(super) fn files_in_script<'c>(program: &str, code: &'c str) -> Vec<(&'c str, Access)> {
    let quoted = |rest: &'c str| rest.trim_start().strip_prefix('"')?.split('"').next();
    match program {
        "awk" | "gawk" | "mawk" | "nawk" => {
            let written = code.split('>').skip(1).filter_map(quoted);
            let read = code.split("getline").skip(1).filter_map(|rest| {
                let at = rest.find('<')?;
                quoted(rest.get(at + 1..)?)
            });
            let written = written.map(|file| (file, Access::Write));
            written
                .chain(read.map(|file| (file, Access::Read)))
                .filter(|(file, _)| !file.is_empty() && !file.starts_with("/dev/"))
                .collect()
        }
        "sed" | "gsed" => {
            let commands = code.split(['\n', ';', '}']);
            commands
                .filter_map(|command| {
                    let (start, file) = command.split_once("w ")?;
                    let is_command = start.is_empty()
                        || start.ends_with(['/', '|', ',', '#', '$', 'g', 'p', 'I'])
                        || start.ends_with(|letter: char| letter.is_ascii_digit());
                    (is_command && !file.contains(' ') && !file.is_empty())
                        .then_some((file, Access::Write))
                })
                .collect()
        }
        _ => Vec::new(),
    }
}
