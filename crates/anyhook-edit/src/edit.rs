//! The operations on a text. Pure: a text and a wish in, a new text out.
//!
//! Every operation plans its change on the tree, makes it on the text by
//! splicing, reads the result back, and returns it only when the tree that
//! comes back is the one that was planned. So a mistake here is an error
//! message, never a damaged file.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::EditError;
use crate::node::{Compare, Form, Node};
use crate::patch::{Action, Patch};
use crate::path::{Key, show};
use crate::source::{bom_len, cut, from, splice};
use crate::{json, toml};

/// The language of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Without comments and trailing commas: a file that has them is refused.
    Json,
    /// With comments and trailing commas, for readers that accept them.
    Jsonc,
    Toml,
}

impl Format {
    /// For taking things out: comments that somebody put where the reader does
    /// not accept them are no reason to stay in.
    pub(crate) fn lenient(self) -> Self {
        match self {
            Self::Json | Self::Jsonc => Self::Jsonc,
            Self::Toml => Self::Toml,
        }
    }
}

/// How new text is written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Writes `\/` for every `/` in the strings that go into JSON, for readers
    /// that cut off `//` even inside strings.
    pub escape_slashes: bool,
    /// The members that a document starts with when there is none yet.
    pub preamble: Map<String, Value>,
}

/// A text after an edit, and the record that undoes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Edited {
    pub text: String,
    pub patch: Patch,
}

/// A text after elements were taken out.
#[derive(Debug, Clone, PartialEq)]
pub struct Removed {
    pub text: String,
    /// The elements, in the order of the file.
    pub values: Vec<Value>,
}

/// Reads the value at `path`.
pub fn get(text: &str, format: Format, path: &[Key]) -> Result<Option<Value>, EditError> {
    let body = from(text, bom_len(text));
    let Some(root) = parse(body, format)? else {
        return Ok(None);
    };
    match root.descend(body, path) {
        Ok((depth, node)) => Ok((depth == path.len()).then(|| node.to_value())),
        Err(EditError::NoElement { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts `value` at the end of the array at `path`, which is made when it is not there.
pub fn append(
    text: &str,
    format: Format,
    path: &[Key],
    value: &Value,
    options: &Options,
) -> Result<Edited, EditError> {
    change(text, format, Action::Append, path, value, options)
}

/// As [`append`], but does nothing when an element of the array is ours already.
pub fn append_unless(
    text: &str,
    format: Format,
    path: &[Key],
    value: &Value,
    options: &Options,
    ours: &dyn Fn(&Value) -> bool,
) -> Result<Option<Edited>, EditError> {
    if let Some(Value::Array(items)) = get(text, format, path)?
        && items.iter().any(ours)
    {
        return Ok(None);
    }
    append(text, format, path, value, options).map(Some)
}

/// Writes a key that is not there yet.
pub fn set(
    text: &str,
    format: Format,
    path: &[Key],
    value: &Value,
    options: &Options,
) -> Result<Edited, EditError> {
    change(text, format, Action::Set, path, value, options)
}

/// Takes every element that matches out of the array at `path`, and up to
/// `prune` of the containers around it when that leaves them empty.
///
/// Without a [`Patch`] nobody knows who made those containers; with one, use
/// [`undo`](crate::undo).
pub fn remove_matching(
    text: &str,
    format: Format,
    path: &[Key],
    matches: &dyn Fn(&Value) -> bool,
    prune: usize,
) -> Result<Removed, EditError> {
    let format = format.lenient();
    let mut removed = Removed {
        text: text.to_owned(),
        values: Vec::new(),
    };
    loop {
        let body = from(&removed.text, bom_len(&removed.text));
        let Some(root) = parse(body, format)? else {
            break;
        };
        let (depth, node) = match root.descend(body, path) {
            Err(EditError::NoElement { .. }) => break,
            reached => reached?,
        };
        if depth < path.len() {
            break;
        }
        let Some(items) = node.items() else {
            return Err(node.mismatch(body, show(path), "an array"));
        };
        let found = items
            .iter()
            .map(Node::to_value)
            .enumerate()
            .filter(|(_, value)| matches(value))
            .last();
        let Some((index, value)) = found else {
            break;
        };
        let mut target = path.to_vec();
        target.push(Key::Index(index));
        let target = climb(&root, target, prune);
        let body = remove_at(body, format, &root, &target)?;
        removed.text = with_bom(&removed.text, &body);
        removed.values.insert(0, value);
    }
    Ok(removed)
}

fn change(
    text: &str,
    format: Format,
    action: Action,
    path: &[Key],
    value: &Value,
    options: &Options,
) -> Result<Edited, EditError> {
    let bom = bom_len(text);
    let body = from(text, bom);
    let root = parse(body, format)?;
    // A TOML text always has a root table; one without a word in it counts as none.
    let blank = root
        .as_ref()
        .is_none_or(|root| format == Format::Toml && body.trim().is_empty() && root.len() == 0);
    let preamble;
    let start = if let Some(root) = root.as_ref().filter(|_| !blank) {
        root
    } else {
        preamble = Node::from_value(&Value::Object(options.preamble.clone()));
        &preamble
    };
    let planned = plan(body, start, action, path, value)?;
    let proposals = match (&root, blank, format) {
        (_, true, Format::Json | Format::Jsonc) => {
            let whole = planned.tree.to_value();
            vec![json::document(body, &whole, options.escape_slashes)]
        }
        (_, true, Format::Toml) => vec![toml::document(body, &planned.tree.to_value())?],
        (Some(root), false, Format::Json | Format::Jsonc) => vec![json::insert(
            body,
            root,
            planned.container,
            planned.key,
            &planned.value,
            options.escape_slashes,
        )],
        (Some(root), false, Format::Toml) => {
            toml::insert(body, root, planned.container, planned.key, &planned.value)?
        }
        (None, _, _) => Vec::new(),
    };
    for mut insertions in proposals {
        let new = splice(body, &insertions);
        let back = parse(&new, format);
        let Ok(Some(back)) = back else {
            continue;
        };
        if !back.same(&planned.tree, compare(format)) {
            continue;
        }
        for insertion in &mut insertions {
            insertion.at += bom;
        }
        let text_after = with_bom(text, &new);
        let patch = Patch {
            format,
            action,
            path: path.to_vec(),
            value: value.clone(),
            created: planned.created + usize::from(blank),
            preamble: if blank {
                options.preamble.clone()
            } else {
                Map::new()
            },
            ..Patch::of(text, &text_after, &insertions)
        };
        return Ok(Edited {
            text: text_after,
            patch,
        });
    }
    Err(EditError::Unsafe { at: show(path) })
}

/// What an edit is to achieve: `value` goes into `container`, and `tree` comes of it.
struct Plan<'p> {
    container: &'p [Key],
    key: Option<&'p str>,
    value: Value,
    created: usize,
    tree: Node,
}

fn plan<'p>(
    text: &str,
    root: &Node,
    action: Action,
    path: &'p [Key],
    value: &Value,
) -> Result<Plan<'p>, EditError> {
    let (depth, node) = root.descend(text, path)?;
    let (container, missing) = path.split_at(depth);
    let mut planned = Plan {
        container,
        key: None,
        value: value.clone(),
        created: 0,
        tree: root.clone(),
    };
    if let Some((first, deeper)) = missing.split_first() {
        if action == Action::Append {
            planned.value = Value::Array(vec![planned.value]);
            planned.created = 1;
        }
        for key in deeper.iter().rev() {
            let Key::Name(name) = key else {
                return Err(EditError::NoElement {
                    at: show(path),
                    index: 0,
                });
            };
            planned.value = Value::Object(Map::from_iter([(name.clone(), planned.value)]));
            planned.created += 1;
        }
        if let Key::Name(name) = first {
            planned.key = Some(name);
        }
    } else if action == Action::Set {
        let (line, column) = crate::source::position(text, node.span.start);
        return Err(EditError::AlreadySet {
            at: show(path),
            line,
            column,
        });
    } else if node.items().is_none() {
        return Err(node.mismatch(text, show(path), "an array"));
    }
    let child = Node::from_value(&planned.value);
    if let Some(container) = planned.tree.at_mut(container) {
        container.push(planned.key, child);
    }
    Ok(planned)
}

pub(crate) fn parse(body: &str, format: Format) -> Result<Option<Node>, EditError> {
    match format {
        Format::Json => json::parse(body, false),
        Format::Jsonc => json::parse(body, true),
        Format::Toml => toml::parse(body).map(Some),
    }
}

pub(crate) fn compare(format: Format) -> Compare {
    match format {
        Format::Json | Format::Jsonc => Compare::Strict,
        Format::Toml => Compare::Unordered,
    }
}

/// The body behind the byte order mark that `original` has, if it has one.
pub(crate) fn with_bom(original: &str, body: &str) -> String {
    let mark = crate::source::before(original, bom_len(original));
    format!("{mark}{body}")
}

/// The topmost node that may go together with `target`: up to `limit`
/// containers around it go too when they hold nothing else.
pub(crate) fn climb(root: &Node, mut target: Vec<Key>, limit: usize) -> Vec<Key> {
    for _ in 0..limit {
        let parents = target
            .len()
            .checked_sub(1)
            .and_then(|end| target.get(..end));
        let Some(parents) = parents else {
            break;
        };
        if root.at(parents).is_none_or(|parent| parent.len() != 1) {
            break;
        }
        target.pop();
    }
    target
}

/// The text without the node at `target`, read back and found to differ in that only.
pub(crate) fn remove_at(
    body: &str,
    format: Format,
    root: &Node,
    target: &[Key],
) -> Result<String, EditError> {
    root.descend(body, target)?;
    let ranges = match format {
        Format::Json | Format::Jsonc => json::remove(body, root, target),
        Format::Toml => toml::remove(body, root, target),
    };
    let new = cut(body, ranges);
    let back = parse(&new, format)?;
    if is_rest(format, back.as_ref(), root, target) {
        Ok(new)
    } else {
        Err(EditError::Unsafe { at: show(target) })
    }
}

/// Whether `back` is `root` without the node at `target`.
pub(crate) fn is_rest(format: Format, back: Option<&Node>, root: &Node, target: &[Key]) -> bool {
    let (rest, back) = match (root.without(target), back) {
        (None, None) => return true,
        (None, Some(back)) => return format == Format::Toml && back.len() == 0,
        (Some(_), None) => return false,
        (Some(rest), Some(back)) => (rest, back),
    };
    // The last of an array of tables takes the array with it: there is no text for an empty one.
    let tables = target
        .split_last()
        .and_then(|(_, parents)| root.at(parents))
        .is_some_and(|parent| parent.form == Form::Tables && parent.len() == 1);
    let implied = format == Format::Toml && tables;
    back.same(&rest, compare(format)) || (implied && back.same(&rest, Compare::Hollow))
}
