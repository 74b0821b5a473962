//! The tree of a script: as small as the guards need it.

/// A list of commands, in the order in which they may run.
pub(super) type Script = Vec<Step>;

#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) item: ScriptItem,
    /// Runs only if the step before failed: the right side of `||`.
    pub(super) is_alternative: bool,
}

#[derive(Debug, Clone)]
pub(super) enum ScriptItem {
    Simple(SimpleCommand),
    /// At least two.
    Pipeline(Vec<ScriptItem>),
    /// A group, subshell or the parts of `if`, `while` and `case`.
    Block {
        steps: Script,
        redirects: Vec<SyntaxRedirect>,
        kind: BlockKind,
    },
    For {
        variable: String,
        /// `None`: the positional parameters.
        words: Option<Vec<ScriptWord>>,
        steps: Script,
        redirects: Vec<SyntaxRedirect>,
    },
    Function {
        name: String,
        body: Box<ScriptItem>,
    },
    /// `[[ … ]]`, `(( … ))` and the word of a `case`: only its substitutions run.
    Words(Vec<ScriptWord>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    Group,
    Subshell,
    /// Runs or does not: a branch or the body of a loop.
    Conditional,
}

#[derive(Debug, Clone, Default)]
pub(super) struct SimpleCommand {
    pub(super) assignments: Vec<Assignment>,
    pub(super) words: Vec<ScriptWord>,
    pub(super) redirects: Vec<SyntaxRedirect>,
}

impl SimpleCommand {
    /// Whether assignments that follow its first word set variables of the shell.
    pub(super) fn is_declaration(&self) -> bool {
        let first = self.words.first().and_then(ScriptWord::bare);
        matches!(
            first,
            Some("declare" | "typeset" | "local" | "readonly" | "export")
        )
    }
}

#[derive(Debug, Clone)]
pub(super) struct Assignment {
    pub(super) name: String,
    /// Several for an array.
    pub(super) values: Vec<ScriptWord>,
    pub(super) appends: bool,
    /// `name=(…)`.
    pub(super) is_array: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct ScriptWord {
    pub(super) parts: Vec<WordPart>,
}

#[derive(Debug, Clone)]
pub(super) enum WordPart {
    Text {
        text: String,
        is_quoted: bool,
    },
    /// `$name` and `${name…}`.
    Variable {
        name: String,
        operator: VariableOperator,
        is_quoted: bool,
    },
    /// `$(…)` and backquotes.
    Command {
        steps: Script,
        is_quoted: bool,
    },
    /// `<(…)` and `>(…)`.
    Process {
        steps: Script,
        /// `>(…)`: it reads what the command writes.
        is_reader: bool,
    },
    /// `$((…))`: a number; what runs inside it.
    Arithmetic(Vec<WordPart>),
}

#[derive(Debug, Clone)]
pub(super) enum VariableOperator {
    Plain,
    /// `${x:-word}`, `${x-word}`, `${x:=word}`, `${x=word}`.
    Default {
        word: ScriptWord,
        assigns: bool,
    },
    /// `${x:+word}`, `${x+word}`.
    Alternative(ScriptWord),
    /// `${x:?word}`: the value, or the script ends.
    Required(ScriptWord),
    /// `${#x}`: a number.
    Length,
    /// `${!x}`: the variable that it names.
    Indirect,
    /// Cuts, replacements and the like: the operator and what follows it.
    Other {
        operator: String,
        word: ScriptWord,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RedirectKind {
    Input,
    Output,
    Append,
    /// `<>`.
    ReadWrite,
    /// `>&1`, `<&0`: of descriptors only.
    Duplicate,
    /// Here-documents and here-strings: the target is the text.
    Text,
}

#[derive(Debug, Clone)]
pub(super) struct SyntaxRedirect {
    pub(super) kind: RedirectKind,
    /// The target, or the text of a here-document.
    pub(super) word: ScriptWord,
    /// Index into the bodies of here-documents, until the body is known.
    pub(super) body: Option<usize>,
    /// The number before the operator; empty if there is none.
    pub(super) descriptor: String,
}

impl ScriptWord {
    pub(super) fn literal(text: &str) -> Self {
        let text = text.to_owned();
        Self {
            parts: vec![WordPart::Text {
                text,
                is_quoted: true,
            }],
        }
    }

    /// The variable of `$name`, if the word is nothing else.
    pub(super) fn lone_variable(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [
                WordPart::Variable {
                    name,
                    operator: VariableOperator::Plain,
                    ..
                },
            ] => Some(name),
            _ => None,
        }
    }

    /// The text of a word that has no quotes and no expansions.
    pub(super) fn bare(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [WordPart::Text { text, is_quoted }] if !is_quoted => Some(text),
            _ => None,
        }
    }
}
