//! Variables in a command that the program's own agent sets: they are written as
//! what the target sets, or as a path that is right where the target starts hooks.

use std::fmt::Write as _;

use anyhook_agents::Adapter;
use anyhook_agents::spec::StartFolder;
use anyhook_model::Handler;

use super::HookFitter;

/// The root of the project's repository, where a hook may start in a folder below it.
const ROOT_BY_GIT: &str = "$(git rev-parse --show-toplevel 2>/dev/null || pwd)";

/// The meaning of a variable that names the project, as agents' tables state it.
const PROJECT: &str = "{project}";

/// What becomes of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VariableFit<'a> {
    Kept,
    Renamed(&'a str),
    /// Hooks start in the project's root.
    StartFolder,
    /// Hooks may start below the project's root.
    ByGit,
    Lost,
}

impl HookFitter<'_> {
    /// Rewrites the variables in every command of a handler.
    pub(super) fn fit_variables(&mut self, handler: &mut Handler) {
        if self.is_same_config {
            return;
        }
        let before = handler.clone();
        let mut seen: Vec<(String, VariableFit<'static>)> = Vec::new();
        let mut fit = |name: &str, has_shell: bool| {
            let fit = match self.variable_fit(name) {
                VariableFit::ByGit if !has_shell => VariableFit::Lost,
                fit => fit,
            };
            if fit == VariableFit::Lost {
                seen.retain(|(known, _)| known != name);
            }
            if !seen.iter().any(|(known, _)| known == name) {
                seen.push((name.to_owned(), fit));
            }
            fit
        };
        let has_shell = handler.args.is_none();
        let words = handler.command.iter_mut();
        let words = words.chain(handler.args.iter_mut().flatten());
        let expands_itself = self.adapter.spec.launch.expands_variables;
        let root = project_by_git(self.options.folder_in_repository);
        let rewritten = Rewriting {
            project: &root,
            braces: expands_itself,
        };
        for text in words {
            *text = rewritten.rewrite(text, has_shell, &mut fit);
        }
        let platform = &mut handler.platform;
        for line in [&mut platform.linux, &mut platform.osx]
            .into_iter()
            .flatten()
        {
            *line = rewritten.rewrite(line, true, &mut fit);
        }
        if let Some(line) = &mut platform.windows {
            *line = rewrite_windows(line, self.own_variables(), &mut fit);
        }
        let changed = [
            ("handler.command", before.command != handler.command),
            ("handler.args", before.args != handler.args),
            ("handler.platform", before.platform != handler.platform),
        ];
        let changed = changed.into_iter().filter(|(_, is_changed)| *is_changed);
        let changed: Vec<&str> = changed.map(|(field, _)| field).collect();
        for (name, fit) in seen {
            self.report_variable(&name, fit, &changed);
        }
    }

    fn report_variable(&mut self, name: &str, fit: VariableFit<'_>, changed: &[&str]) {
        let target = self.target();
        let message = match fit {
            VariableFit::Kept if changed.is_empty() => return,
            VariableFit::Kept => {
                format!("`${name}` is written with braces, which {target} leaves to the shell")
            }
            VariableFit::Lost => {
                let message = format!(
                    "{target} does not set `${name}`: the command will not find what it names"
                );
                self.warn_weakened("handler.command", message);
                return;
            }
            VariableFit::Renamed(new) => format!("`${name}` is `${new}` there"),
            VariableFit::StartFolder => {
                format!("`${name}` is written as `.`: {target} starts hooks in the project's root")
            }
            VariableFit::ByGit => format!(
                "{target} does not set `${name}`: git finds the project's root; without git, start {target} in that folder"
            ),
        };
        for field in changed {
            self.warnings.info(field, message.clone());
        }
    }

    /// Whether the project's folder in its repository is plain text in double quotes.
    fn has_writable_folder(&self) -> bool {
        let folder = self.options.folder_in_repository.unwrap_or_default();
        !folder.contains(['"', '$', '`', '\\', '!'])
    }

    /// The names of the variables that the program's own agent sets.
    fn own_variables(&self) -> Vec<&'static str> {
        let agent = anyhook_agents::get(self.speaks());
        let names = agent.into_iter().flat_map(|agent| agent.spec.env.keys());
        names.map(AsRef::as_ref).collect()
    }

    fn variable_fit(&self, name: &str) -> VariableFit<'static> {
        let agent = anyhook_agents::get(self.speaks());
        let own = agent.and_then(|agent| agent.spec.env.get(name));
        let mut bridge = self.options.bridge_variables.iter();
        let bridge = bridge.find(|(known, _)| *known == name);
        let bridge = bridge.map(|(_, meaning)| *meaning);
        if self.hook.handler.env.contains_key(name) {
            return VariableFit::Kept;
        }
        let Some(meaning) = own.map(AsRef::as_ref).or(bridge) else {
            let is_given = |adapter: &Adapter| adapter.variables_of_hooks().any(|own| own == name);
            return if agent.is_some_and(is_given) && !is_given(self.adapter) {
                VariableFit::Lost
            } else {
                VariableFit::Kept
            };
        };
        let there = &self.adapter.spec.env;
        let is_plugin = meaning == "{plugin}";
        if there.get(name).is_some_and(|other| other == meaning) && !is_plugin {
            return VariableFit::Kept;
        }
        let mut others = there
            .iter()
            .filter(|(_, other)| *other == meaning && !is_plugin);
        match others.next() {
            Some((other, _)) => VariableFit::Renamed(other),
            None if meaning != PROJECT => VariableFit::Lost,
            None => match self.adapter.spec.launch.starts_in {
                StartFolder::Project => VariableFit::StartFolder,
                StartFolder::Session if self.has_writable_folder() => VariableFit::ByGit,
                StartFolder::Session => VariableFit::Lost,
            },
        }
    }
}

/// The project's folder as a shell finds it.
fn project_by_git(folder: Option<&str>) -> String {
    match folder {
        None => ROOT_BY_GIT.to_owned(),
        Some(folder) => format!("{ROOT_BY_GIT}/{folder}"),
    }
}

/// How references to variables are written.
#[derive(Clone, Copy)]
struct Rewriting<'a> {
    /// The project's folder, for a shell.
    project: &'a str,
    /// The target expands `$NAME` itself, with quotes of its own, and leaves
    /// `${NAME}` to the shell.
    braces: bool,
}

impl Rewriting<'_> {
    /// A shell line, or one word of an exec form (`has_shell` is false), in which only
    /// `${NAME}` is a variable.
    fn rewrite<'a>(
        self,
        text: &str,
        has_shell: bool,
        fit: &mut impl FnMut(&str, bool) -> VariableFit<'a>,
    ) -> String {
        let mut written = String::with_capacity(text.len());
        let mut quote: Option<char> = None;
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            let tail = rest.get(letter.len_utf8()..).unwrap_or_default();
            match (quote, letter) {
                (None | Some('"'), '\\') if has_shell => {
                    written.push(letter);
                    written.extend(tail.chars().next());
                    rest = tail
                        .get(tail.chars().next().map_or(0, char::len_utf8)..)
                        .unwrap_or_default();
                    continue;
                }
                (None, '\'' | '"') if has_shell => quote = Some(letter),
                (Some(open), _) if open == letter && has_shell => quote = None,
                (_, '$') => {
                    if let Some(reference) = Reference::parse(tail, has_shell) {
                        // An inner shell may expand what is in single quotes.
                        let is_bare = quote.is_none();
                        let braces = self.braces && quote != Some('\'');
                        reference.write(
                            &mut written,
                            fit(reference.name, has_shell),
                            Rewriting { braces, ..self },
                            (has_shell, is_bare),
                        );
                        rest = tail.get(reference.length..).unwrap_or_default();
                        continue;
                    }
                }
                _ => {}
            }
            written.push(letter);
            rest = tail;
        }
        written
    }
}

/// A reference to a variable, without its `$`.
struct Reference<'a> {
    name: &'a str,
    text: &'a str,
    /// `:-default` and the like.
    operator: &'a str,
    is_braced: bool,
    length: usize,
}

impl<'a> Reference<'a> {
    fn parse(text: &'a str, has_shell: bool) -> Option<Self> {
        let inner = text.strip_prefix('{');
        if inner.is_none() && !has_shell {
            return None;
        }
        let body = inner.unwrap_or(text);
        let is_name = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '_';
        let name = body.get(..body.chars().take_while(is_name).count())?;
        if name.is_empty() {
            return None;
        }
        let after = body.get(name.len()..)?;
        let (operator, length) = if inner.is_some() {
            let operator = after.split_once('}')?.0;
            (operator, name.len() + operator.len() + 2)
        } else {
            ("", name.len())
        };
        Some(Self {
            name,
            text: text.get(..length)?,
            operator,
            is_braced: inner.is_some(),
            length,
        })
    }

    fn write(
        &self,
        out: &mut String,
        fit: VariableFit<'_>,
        Rewriting { project, braces }: Rewriting<'_>,
        (has_shell, is_bare): (bool, bool),
    ) {
        let Self { name, operator, .. } = self;
        let _ = match fit {
            VariableFit::Kept if braces && !self.is_braced => write!(out, "${{{name}}}"),
            VariableFit::Renamed(new) => write!(out, "${{{new}{operator}}}"),
            VariableFit::StartFolder => write!(out, "."),
            VariableFit::ByGit if has_shell && is_bare => write!(out, "\"{project}\""),
            VariableFit::ByGit if has_shell => write!(out, "{project}"),
            _ => write!(out, "${}", self.text),
        };
    }
}

/// A line for Windows: `%NAME%` and `$env:NAME`.
fn rewrite_windows<'a>(
    line: &str,
    names: Vec<&str>,
    fit: &mut impl FnMut(&str, bool) -> VariableFit<'a>,
) -> String {
    let mut line = line.to_owned();
    for name in names {
        for (before, after) in [("%", "%"), ("${env:", "}"), ("$env:", "")] {
            let reference = format!("{before}{name}{after}");
            if line.contains(&reference) {
                let new = match fit(name, false) {
                    VariableFit::Renamed(new) => format!("{before}{new}{after}"),
                    VariableFit::StartFolder => ".".to_owned(),
                    VariableFit::Kept | VariableFit::ByGit | VariableFit::Lost => continue,
                };
                line = line.replace(&reference, &new);
            }
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_rewritten_in_every_form() {
        let fit = |name: &str, _: bool| match name {
            "OLD" => VariableFit::Renamed("NEW"),
            "HERE" => VariableFit::StartFolder,
            "GIT" => VariableFit::ByGit,
            "LOST" => VariableFit::Lost,
            _ => VariableFit::Kept,
        };
        let plain = Rewriting {
            project: ROOT_BY_GIT,
            braces: false,
        };
        for (line, expected) in [
            ("\"$OLD\"/a.sh", "\"${NEW}\"/a.sh"),
            ("${OLD:-x}/a.sh $OLDER", "${NEW:-x}/a.sh $OLDER"),
            ("sh -c '$OLD/a'", "sh -c '${NEW}/a'"),
            ("\\$OLD $", "\\$OLD $"),
            ("$HERE/a.sh", "./a.sh"),
            ("$LOST/a $(id) ${x", "$LOST/a $(id) ${x"),
        ] {
            assert_eq!(plain.rewrite(line, true, &mut { fit }), expected, "{line}");
        }
        let git = plain.rewrite("$GIT/a \"${GIT}/b c\"", true, &mut { fit });
        assert_eq!(git, format!("\"{ROOT_BY_GIT}\"/a \"{ROOT_BY_GIT}/b c\""));
        let below = project_by_git(Some("packages/app"));
        let below = Rewriting {
            project: &below,
            braces: true,
        };
        assert_eq!(below.rewrite("$KEPT/a", true, &mut { fit }), "${KEPT}/a");
        assert_eq!(
            below.rewrite("$GIT/a", true, &mut { fit }),
            format!("\"{ROOT_BY_GIT}/packages/app\"/a")
        );
        assert_eq!(
            plain.rewrite("$OLD ${OLD} '", false, &mut { fit }),
            "$OLD ${NEW} '"
        );
        let windows = rewrite_windows("%OLD%\\a $env:OLD", vec!["OLD"], &mut { fit });
        assert_eq!(windows, "%NEW%\\a $env:NEW");
    }
}
