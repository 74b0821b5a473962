//! The files that a command names, as they will be found when it runs.
//!
//! Consent is by content, so every file that can be known must be found.
//! Variables that anyhook sets, changes of the folder, and nested lines
//! (`sh -c '…'`) are followed. Which of them happen is known only to the shell,
//! so each is taken to be possible: better a file too many than one too few. For
//! a word that only the shell can expand, the files are taken to which its
//! literal beginning leads. What remains unknown is put in words for the user.

use std::path::{Path, PathBuf};

use anyhook_util::shell::{self, Syntax, Word};

use super::command::{CommandContext, normalize_path, with_slashes};
use super::interpreters::PROGRAM_ENDINGS;
use super::loaders::{
    FOLDER_OPTIONS, LOADING_WORDS, MODULE_FOLDER_OPTIONS, MODULE_RULES, ModuleRule, RUNNERS,
    is_search_variable,
};
use super::words::{
    WordRole, WordRoles, assignment, is_inline_option, is_interpreter, is_program_option,
};

/// Nested lines are followed to this depth.
const MAX_NESTING_DEPTH: usize = 3;

/// A folder with more matching files is not taken.
const MAX_FOLDER_FILES: usize = 256;

/// Folders that a command may be in, and texts that a word may become.
const MAX_ALTERNATIVES: usize = 16;

/// The shell replaces these by the repository's root.
const REPOSITORY_ROOT_COMMANDS: [&str; 3] = [
    "$(git rev-parse --show-toplevel)",
    "$(git rev-parse --show-toplevel 2>/dev/null)",
    "`git rev-parse --show-toplevel`",
];

/// Programs that run their arguments as a line.
const LINE_PROGRAMS: [&str; 10] = [
    "bash", "dash", "eval", "fish", "ksh", "pwsh", "sh", "trap", "watch", "zsh",
];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandFiles {
    pub files: Vec<PathBuf>,
    /// Places of files that do not exist.
    pub absent: Vec<PathBuf>,
    /// What the command runs and cannot be known before, in words that complete
    /// "trust cannot cover …".
    pub uncovered: Vec<String>,
}

impl CommandFiles {
    fn add(&mut self, path: PathBuf) {
        let list = if path.is_file() {
            &mut self.files
        } else {
            &mut self.absent
        };
        if !list.contains(&path) {
            list.push(path);
        }
    }

    fn report(&mut self, what: String) {
        if !self.uncovered.contains(&what) {
            self.uncovered.push(what);
        }
    }
}

impl CommandContext<'_> {
    /// Every file that a command names, except those that it only writes: a
    /// hook's own log is not its code. `variables` are those that it will have.
    pub fn files_of(&self, command: &str, variables: &[(String, String)]) -> CommandFiles {
        // A backslash in a value would be read as an escape where the value is used.
        let variables: Vec<(String, String)> = variables
            .iter()
            .map(|(name, value)| (name.clone(), with_slashes(value).into_owned()))
            .collect();
        let mut scanner = CommandScanner {
            context: *self,
            folders: vec![self.cwd.to_owned()],
            variables: variables.clone(),
            found: CommandFiles::default(),
        };
        for (name, value) in &variables {
            scanner.search_variable(name, value);
        }
        scanner.line(command, MAX_NESTING_DEPTH, true);
        if cfg!(windows) && command.contains(['\\', '%']) {
            let command = with_posix_variables(&command.replace('\\', "/"));
            scanner.line(&command, MAX_NESTING_DEPTH, true);
        }
        scanner.found
    }
}

struct CommandScanner<'a> {
    context: CommandContext<'a>,
    /// The folders that the command may be in.
    folders: Vec<PathBuf>,
    /// A name may have several values.
    variables: Vec<(String, String)>,
    found: CommandFiles,
}

/// The command of a line that is being read.
#[derive(Default)]
struct CurrentCommand {
    /// Its programs: there are several after `env` and the like.
    programs: Vec<String>,
    /// The last word, if it is an option.
    option: String,
    /// An interpreter has got its script or code.
    has_operand: bool,
    /// An option keeps the interpreter from loading anything that is not named.
    is_isolated: bool,
}

impl CommandScanner<'_> {
    /// `is_code`: the text is known to be a command line.
    fn line(&mut self, command: &str, nesting: usize, is_code: bool) {
        let mut command = command.to_owned();
        for toplevel in REPOSITORY_ROOT_COMMANDS {
            if command.contains(toplevel) {
                let top = self.repository().to_string_lossy().into_owned();
                command = command.replace(toplevel, &with_slashes(&top));
            }
        }
        let mut roles = WordRoles::default();
        let mut current = CurrentCommand::default();
        for word in shell::split(&command, Syntax::SCRIPT).words {
            if word.is_program {
                self.end_command(&std::mem::take(&mut current), is_code);
            }
            let role = roles.next_role(&word);
            let alternatives = self.expansions(&word.text);
            for text in &alternatives {
                self.word(&word, text, role, &roles, &current, (nesting, is_code));
            }
            let text = alternatives
                .first()
                .map_or(word.text.as_str(), String::as_str);
            if role == WordRole::Program {
                current.programs.push(roles.program().to_owned());
            }
            let is_code_of = is_inline_option(&current.option) && is_interpreter(roles.program());
            current.has_operand |= role == WordRole::Script || is_code_of;
            current.is_isolated |= module_rule(roles.program()).is_some_and(|rule| {
                let is_flags = text.starts_with('-') && !text.starts_with("--");
                is_flags && !current.has_operand && text.contains(rule.isolation)
            });
            current.option.clear();
            if text.starts_with('-') {
                text.clone_into(&mut current.option);
            }
        }
        self.end_command(&current, is_code);
    }

    /// What a program runs is known when its options are.
    fn end_command(&mut self, command: &CurrentCommand, is_code: bool) {
        for program in &command.programs {
            let name = program.as_str();
            for runner in RUNNERS.iter().filter(|row| row.programs.contains(&name)) {
                if is_code {
                    let runs = runner.runs;
                    self.found.report(format!("`{name}`: {runs}"));
                }
                for file in runner.files {
                    self.file(file);
                }
            }
            if is_code && is_interpreter(name) && !command.has_operand {
                self.found
                    .report(format!("what `{name}` reads from its input"));
            }
        }
    }

    fn word(
        &mut self,
        word: &Word,
        text: &str,
        role: WordRole,
        roles: &WordRoles,
        current: &CurrentCommand,
        (nesting, is_code): (usize, bool),
    ) {
        if role == WordRole::Output {
            return;
        }
        let program = roles.program();
        let is_unresolved = word.expands && text.contains(['$', '`']);
        if let Some((name, value)) = assignment(text) {
            if !is_unresolved {
                let variable = (name.to_owned(), value.to_owned());
                self.variables.insert(0, variable);
            }
            if is_code {
                self.search_variable(name, value);
            }
        } else {
            self.forget(text, program, &current.option);
        }
        let is_folder =
            role == WordRole::Folder || FOLDER_OPTIONS.contains(&current.option.as_str());
        if is_folder && !is_unresolved {
            self.enter(text);
            if role == WordRole::Folder {
                return;
            }
        }
        if is_code && is_program_option(text) {
            let what = format!("the files that `{program}` passes to `{text}`");
            self.found.report(what);
        }
        let is_inline = is_inline_option(&current.option) && is_interpreter(program);
        let is_line = nesting > 0
            && is_code
            && (LINE_PROGRAMS.contains(&program) || current.option == "-S")
            && (is_inline || !is_interpreter(program));
        if is_unresolved || word.is_pattern || text.starts_with('~') {
            let runs = matches!(
                role,
                WordRole::Program | WordRole::Script | WordRole::Folder
            ) || roles.wraps()
                || is_line;
            if text.contains('/') || (runs && is_code) {
                self.folder_files(text);
                if text != "$" {
                    self.found
                        .report(format!("the files that `{}` names", word.text));
                }
            }
        } else {
            self.named_files(text, is_code);
            self.modules(text, role, program, current, is_code);
        }
        if nesting > 0 && text.contains(char::is_whitespace) {
            self.line(text, nesting - 1, is_line);
        }
    }

    /// The files that a literal word names.
    fn named_files(&mut self, text: &str, is_code: bool) {
        // `--config=./rules.json` names a file as well.
        let option = text.split_once('=');
        let is_output = |name: &str| name.starts_with("--log") || name.starts_with("--out");
        if let Some((name, value)) = option
            && is_output(name)
        {
            if is_code && !value.is_empty() {
                self.found
                    .report(format!("`{value}`, which `{name}` seems to write"));
            }
            return;
        }
        if let Some((name, value)) = option
            && FOLDER_OPTIONS.contains(&name)
        {
            self.enter(value);
        }
        let value = option.map(|(_, value)| value);
        for text in [Some(text), value].into_iter().flatten() {
            for text in brace_alternatives(text) {
                self.file(&text);
            }
            if text.contains('{') && text.contains("..") && text.contains('}') && is_code {
                self.found.report(format!("the files that `{text}` names"));
            }
        }
    }

    /// Files that an interpreter finds by a name that is not their path.
    fn modules(
        &mut self,
        text: &str,
        role: WordRole,
        program: &str,
        current: &CurrentCommand,
        is_code: bool,
    ) {
        let Some(rule) = module_rule(program) else {
            if is_code
                && is_inline_option(&current.option)
                && is_interpreter(program)
                && !LINE_PROGRAMS.contains(&program)
                && LOADING_WORDS.iter().any(|word| text.contains(word))
            {
                self.found
                    .report(format!("what the code after `{}` loads", current.option));
            }
            return;
        };
        if role == WordRole::Program || text.starts_with("--") {
            return;
        }
        let module = match text.strip_prefix("-m") {
            Some(module) if program == "python" => Some(module),
            _ => (current.option == "-m").then_some(text),
        };
        let name = module.map_or_else(|| text.to_owned(), |module| module.replace('.', "/"));
        if !name.is_empty() && !name.starts_with('-') {
            let name = name.trim_end_matches('/');
            for suffix in rule.suffixes {
                self.file(&format!("{name}{suffix}"));
            }
            self.main_of_package(name);
        }
        if !is_code {
            return;
        }
        let folder = MODULE_FOLDER_OPTIONS.iter().find_map(|option| {
            let joined = text
                .strip_prefix(option)
                .filter(|folder| !folder.is_empty());
            joined.or((current.option == *option).then_some(text))
        });
        if let Some(folder) = folder.filter(|_| program != "python") {
            self.found.report(format!("the modules in `{folder}`"));
        }
        let is_inline = is_inline_option(&current.option);
        if let Some(module) = module.filter(|module| !module.is_empty()) {
            self.found
                .report(format!("the module `{module}` and those that it imports"));
        } else if is_inline && LOADING_WORDS.iter().any(|word| text.contains(word)) {
            if !current.is_isolated || program != "python" {
                self.found
                    .report(format!("what the code after `{}` loads", current.option));
            }
        } else if role == WordRole::Script && !current.is_isolated {
            let loads = rule.loads.map(|loads| format!("`{text}`: {loads}"));
            if let Some(what) = loads {
                self.found.report(what);
            }
        }
    }

    /// The file that `node folder` runs by the folder's `package.json`.
    fn main_of_package(&mut self, folder: &str) {
        let candidates = self.folders.iter().map(|cwd| cwd.join(folder));
        let mains: Vec<PathBuf> = candidates
            .filter_map(|folder| {
                let text = std::fs::read(folder.join("package.json")).ok()?;
                let package: serde_json::Value = serde_json::from_slice(&text).ok()?;
                let main = package.get("main")?.as_str()?.to_owned();
                Some(folder.join(main))
            })
            .collect();
        for main in mains {
            for suffix in ["", ".js", "/index.js"] {
                let mut path = main.clone().into_os_string();
                path.push(suffix);
                self.found.add(normalize_path(Path::new(&path)));
            }
        }
    }

    /// Reports a variable by which programs find their code; a value that is a
    /// file is covered.
    fn search_variable(&mut self, name: &str, value: &str) {
        if is_search_variable(name) {
            self.found.report(format!(
                "the programs and files that it finds by `{name}={value}`"
            ));
            for part in value.split(':') {
                self.file(part);
            }
        }
    }

    /// A variable that gets a value from elsewhere is no longer known.
    fn forget(&mut self, text: &str, program: &str, option: &str) {
        let name = match program {
            "read" | "mapfile" | "readarray" | "getopts" | "for" | "select" => Some(text),
            "printf" if option == "-v" => Some(text),
            _ => text.split_once("+=").map(|(name, _)| name),
        };
        if let Some(name) = name {
            self.variables.retain(|(known, _)| known != name);
        }
    }

    /// The command may go to a folder.
    fn enter(&mut self, folder: &str) {
        let targets = self
            .folders
            .iter()
            .map(|from| normalize_path(&from.join(folder)));
        let targets: Vec<PathBuf> = targets.collect();
        for target in targets {
            if !self.folders.contains(&target) && self.folders.len() < MAX_ALTERNATIVES {
                self.folders.push(target);
            }
        }
    }

    fn file(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.file_of_name(text);
        let name = text.rsplit('/').next().unwrap_or(text);
        if cfg!(windows) && !name.contains('.') {
            for ending in PROGRAM_ENDINGS {
                self.file_of_name(&format!("{text}.{ending}"));
            }
        }
    }

    fn file_of_name(&mut self, text: &str) {
        if let Some(script) = self.context.script(text) {
            self.found.add(script);
            // In another folder it may be either.
            if self.folders.len() == 1 {
                return;
            }
        } else if !Path::new(text).is_absolute() {
            // Whether it exists is not asked again: it may be back by now, and must
            // not run unchecked.
            let beside = normalize_path(&self.context.folder.join(text));
            let mut folders = self.folders.iter();
            if !folders.any(|folder| normalize_path(&folder.join(text)) == beside) {
                self.found.add_absent(beside);
            }
        }
        for folder in &self.folders {
            self.found.add(normalize_path(&folder.join(text)));
        }
    }

    /// Adds the files to which the literal beginning of a word can lead, if that
    /// is a folder within the project.
    fn folder_files(&mut self, text: &str) {
        let literal = text.split(['$', '`', '*', '?', '[', '{']).next();
        let Some((folder, name)) = literal.and_then(|literal| literal.rsplit_once('/')) else {
            return;
        };
        let root = self.context.root;
        for from in self.folders.clone() {
            let folder = normalize_path(&from.join(folder));
            if folder == root || !folder.starts_with(root) {
                continue;
            }
            let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let mut files: Vec<PathBuf> = entries
                .filter(|entry| entry.file_name().to_string_lossy().starts_with(name))
                .map(|entry| entry.path())
                .take(MAX_FOLDER_FILES + 1)
                .collect();
            files.sort();
            if files.len() <= MAX_FOLDER_FILES {
                for file in files {
                    self.found.add(file);
                }
            }
        }
    }

    fn repository(&self) -> &Path {
        let mut above = self.context.root.ancestors();
        let top = above.find(|folder| folder.join(".git").exists());
        top.unwrap_or(self.context.root)
    }

    /// The values that a variable may have.
    fn values(&self, name: &str) -> Vec<String> {
        let known = self.variables.iter().filter(|(known, _)| known == name);
        let known: Vec<String> = known.map(|(_, value)| value.clone()).collect();
        match name {
            _ if !known.is_empty() => known,
            "PWD" => {
                let folders = self.folders.iter();
                folders
                    .map(|folder| folder.to_string_lossy().into_owned())
                    .collect()
            }
            "HOME" => anyhook_util::env::HOME.text().into_iter().collect(),
            _ => known,
        }
    }

    /// The texts that a word may become when its known variables are replaced.
    fn expansions(&self, text: &str) -> Vec<String> {
        let mut done = vec![String::with_capacity(text.len())];
        let mut rest = text;
        if text.starts_with("~/")
            && let Some(home) = self.values("HOME").first()
        {
            done = vec![home.clone()];
            rest = text.strip_prefix('~').unwrap_or(text);
        }
        while let Some((before, after)) = rest.split_once('$') {
            let (name, length) = leading_variable(after);
            rest = after.get(length..).unwrap_or_default();
            let mut values = self.values(name);
            if name.is_empty() || values.is_empty() {
                values = vec![format!("${}", after.get(..length).unwrap_or_default())];
            }
            let longer = done.iter().flat_map(|begun| {
                let values = values.iter();
                values.map(move |value| format!("{begun}{before}{value}"))
            });
            done = longer.take(MAX_ALTERNATIVES).collect();
        }
        for text in &mut done {
            text.push_str(rest);
        }
        done
    }
}

impl CommandFiles {
    fn add_absent(&mut self, path: PathBuf) {
        if !self.absent.contains(&path) {
            self.absent.push(path);
        }
    }
}

/// The variables of `cmd.exe` (`%NAME%`) as a POSIX shell writes them. A backslash must
/// be a `/` already.
fn with_posix_variables(line: &str) -> String {
    let mut done = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('%') {
        done.push_str(before);
        let name = after.split_once('%').filter(|(name, _)| {
            let mut letters = name.chars();
            !name.is_empty() && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        rest = if let Some((name, after)) = name {
            done.push_str("${");
            done.push_str(name);
            done.push('}');
            after
        } else {
            done.push('%');
            after
        };
    }
    done + rest
}

fn module_rule(program: &str) -> Option<&'static ModuleRule> {
    MODULE_RULES
        .iter()
        .find(|rule| rule.programs.contains(&program))
}

/// `a{b,c}` as `ab`, `ac`; a text without braces as it is.
fn brace_alternatives(text: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(text) = open.pop() {
        let innermost = text.find('}').and_then(|end| {
            let begin = text.get(..end)?.rfind('{')?;
            let inside = text.get(begin + 1..end)?;
            inside.contains(',').then_some((begin, end))
        });
        let Some((begin, end)) = innermost else {
            done.push(text);
            continue;
        };
        let (before, after) = (text.get(..begin), text.get(end + 1..));
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        let inside = text.get(begin + 1..end).unwrap_or_default();
        for choice in inside.split(',').take(MAX_ALTERNATIVES) {
            if open.len() + done.len() < MAX_ALTERNATIVES * 4 {
                open.push(format!("{before}{choice}{after}"));
            }
        }
    }
    done
}

/// The name of the variable after `$`, and the length of its reference.
fn leading_variable(text: &str) -> (&str, usize) {
    let name_length = |text: &str| {
        text.bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            .count()
    };
    let Some(inner) = text.strip_prefix('{') else {
        let length = name_length(text);
        return (text.get(..length).unwrap_or_default(), length);
    };
    let length = name_length(inner);
    let name = inner.get(..length).unwrap_or_default();
    let rest = inner.get(length..).unwrap_or_default();
    // With a default (`${X:-y}`) a known variable is still itself.
    let has_default = rest.starts_with([':', '-', '?']);
    match rest.find('}') {
        Some(end) if end == 0 || has_default => (name, length + end + 2),
        Some(end) => ("", length + end + 2),
        None => ("", 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhook_model::Scope;

    #[test]
    fn variables_of_cmd_are_read() {
        for (line, posix) in [
            ("%A_1%/x.cmd && y", "${A_1}/x.cmd && y"),
            ("%A%%B%", "${A}${B}"),
            ("100% of %A%", "100% of ${A}"),
            ("%~dp0x %% %a b%", "%~dp0x %% %a b%"),
            ("", ""),
        ] {
            assert_eq!(with_posix_variables(line), posix, "{line}");
        }
    }

    #[test]
    fn every_file_that_can_be_known_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("project");
        let folder = root.join(".anyhook");
        for file in [
            ".git/HEAD",
            ".anyhook/own.sh",
            "hooks/a.sh",
            "hooks/b.sh",
            "top.sh",
        ] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let context = CommandContext {
            scope: Scope::Project,
            root: &root,
            folder: &folder,
            cwd: &root,
        };
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let variables = [
            ("PROJECT".to_owned(), text(&root)),
            ("OWN".to_owned(), text(&folder)),
        ];
        let cases: [(&str, &[&str], &[&str]); 18] = [
            ("sh $PROJECT/hooks/a.sh", &["hooks/a.sh"], &[]),
            ("\"${PROJECT}\"/hooks/a.sh", &["hooks/a.sh"], &[]),
            ("\"${PROJECT:-.}/hooks/a.sh\"", &["hooks/a.sh"], &[]),
            ("${OWN}/own.sh", &[".anyhook/own.sh"], &[]),
            ("cd hooks && ./a.sh", &["hooks/a.sh"], &[]),
            ("cd $PROJECT/hooks; sh b.sh", &["hooks/b.sh"], &[]),
            ("cd hooks && ./top.sh", &["top.sh"], &[]),
            ("D=hooks; sh $D/a.sh", &["hooks/a.sh"], &[]),
            (
                "sh -c 'cd hooks && ./a.sh'; ./top.sh",
                &["hooks/a.sh", "top.sh"],
                &[],
            ),
            ("bash -lc \"$PROJECT/hooks/a.sh --x\"", &["hooks/a.sh"], &[]),
            (
                "\"$(git rev-parse --show-toplevel)/hooks/a.sh\"",
                &["hooks/a.sh"],
                &[],
            ),
            (
                "$(git rev-parse --show-toplevel)/hooks/a.sh",
                &["hooks/a.sh"],
                &[],
            ),
            (
                "sh hooks/$NAME.sh",
                &["hooks/a.sh", "hooks/b.sh"],
                &["hooks/$NAME.sh"],
            ),
            (
                "for f in hooks/a*; do sh $f; done",
                &["hooks/a.sh"],
                &["hooks/a*", "$f"],
            ),
            ("sh \"$WHERE/a.sh\"", &[], &["$WHERE/a.sh"]),
            ("sh $(dirname x)/a.sh", &[], &["$()/a.sh"]),
            ("sh ./$NAME", &[], &["./$NAME"]),
            ("jq -r '.a' | grep -q \"$1\" && echo '$5 a/b'", &[], &[]),
        ];
        for (command, files, unknown) in cases {
            let named = context.files_of(command, &variables);
            let files: Vec<PathBuf> = files.iter().map(|file| root.join(file)).collect();
            assert_eq!(named.files, files, "{command}");
            let unknown = unknown
                .iter()
                .map(|word| format!("the files that `{word}` names"));
            assert_eq!(named.uncovered, unknown.collect::<Vec<_>>(), "{command}");
        }
    }
}
