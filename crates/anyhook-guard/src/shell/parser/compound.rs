//! Compound commands: `if`, `for`, `case`, `[[`, functions.

use super::Parser;
use crate::shell::syntax::{BlockKind, Script, ScriptItem, ScriptWord, Step};

impl Parser<'_> {
    pub(super) fn close(&mut self, end: &str) {
        if self.is_at_end(end) {
            self.at += end.len();
        } else {
            self.has_errors = true;
        }
    }

    pub(super) fn finish_block(&mut self, steps: Script, kind: BlockKind) -> ScriptItem {
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks();
            let Some(redirect) = self.redirect() else {
                break;
            };
            redirects.push(redirect);
        }
        ScriptItem::Block {
            steps,
            redirects,
            kind,
        }
    }

    pub(super) fn if_command(&mut self) -> ScriptItem {
        self.at += 2;
        let mut steps = self.block(&["then", "fi"]);
        while let word @ ("then" | "else" | "elif") = self.word_here() {
            self.at += word.len();
            let branch = self.block(&["then", "elif", "else", "fi"]);
            steps.push(Step {
                item: ScriptItem::Block {
                    steps: branch,
                    redirects: Vec::new(),
                    kind: BlockKind::Conditional,
                },
                is_alternative: false,
            });
        }
        self.close("fi");
        self.finish_block(steps, BlockKind::Group)
    }

    pub(super) fn for_command(&mut self) -> Option<ScriptItem> {
        self.skip_blanks();
        let mut words = None;
        let mut variable = String::new();
        if self.starts_with("((")
            && let Some(end) = self.arithmetic_end(2)
        {
            let parts = self.arithmetic(2, end);
            words = Some(vec![ScriptWord { parts }]);
        } else {
            self.word()?
                .bare()
                .unwrap_or_default()
                .clone_into(&mut variable);
            self.skip_lines();
            if self.word_here() == "in" {
                self.at += 2;
                words = Some(self.words());
            }
        }
        self.skip_blanks();
        self.eat(";");
        self.skip_lines();
        let is_braced = self.word_here() == "{";
        self.close(if is_braced { "{" } else { "do" });
        let end = if is_braced { "}" } else { "done" };
        let steps = self.block(&[end]);
        self.close(end);
        let ScriptItem::Block {
            steps, redirects, ..
        } = self.finish_block(steps, BlockKind::Conditional)
        else {
            return None;
        };
        Some(ScriptItem::For {
            variable,
            words,
            steps,
            redirects,
        })
    }

    pub(super) fn case_command(&mut self) -> Option<ScriptItem> {
        self.at += 4;
        self.skip_blanks();
        let subject = self.word()?;
        self.skip_lines();
        self.close("in");
        let mut steps = vec![Step {
            item: ScriptItem::Words(vec![subject]),
            is_alternative: false,
        }];
        loop {
            self.skip_lines();
            if self.peek().is_none() || self.word_here() == "esac" {
                break;
            }
            self.eat("(");
            // Patterns up to the parenthesis.
            loop {
                self.skip_blanks();
                match self.peek() {
                    None => break,
                    Some(b')') => {
                        self.at += 1;
                        break;
                    }
                    Some(b'|' | b'\n') => self.at += 1,
                    _ => {
                        let before = self.at;
                        let pattern = self.word();
                        steps.extend(pattern.map(|pattern| Step {
                            item: ScriptItem::Words(vec![pattern]),
                            is_alternative: false,
                        }));
                        if self.at == before {
                            self.has_errors = true;
                            self.character();
                        }
                    }
                }
            }
            let branch = self.block(&[";;", ";&", "esac"]);
            steps.push(Step {
                item: ScriptItem::Block {
                    steps: branch,
                    redirects: Vec::new(),
                    kind: BlockKind::Conditional,
                },
                is_alternative: false,
            });
            if self.eat(";;") {
                self.eat("&");
            } else {
                self.eat(";&");
            }
        }
        self.close("esac");
        Some(self.finish_block(steps, BlockKind::Group))
    }

    pub(super) fn test_command(&mut self) -> ScriptItem {
        self.at += 2;
        let mut words = Vec::new();
        loop {
            self.skip_lines();
            let Some(byte) = self.peek() else {
                self.has_errors = true;
                break;
            };
            if self.word_here() == "]]" {
                self.at += 2;
                break;
            }
            let before = self.at;
            if !b"<>".contains(&byte) || self.peek_at(1) == Some(b'(') {
                words.extend(self.word());
            }
            if self.at == before {
                self.at += 1;
            }
        }
        ScriptItem::Words(words)
    }

    pub(super) fn function(&mut self, name: Option<ScriptWord>) -> Option<ScriptItem> {
        self.skip_lines();
        let body = self.nested(Self::command)?;
        let name = name?.bare()?.to_owned();
        Some(ScriptItem::Function {
            name,
            body: Box::new(body),
        })
    }
}
