//! A text with its tree, which follows the text while edits are made.
//!
//! Parsing the whole text for every edit costs too much: a bridge is one edit per
//! event, and a settings file may have megabytes. So a JSON edit is read back from
//! the end of the container that it changes. Only insertions are made there, after
//! the last element, and everything before and behind stays as it is. Whoever takes
//! the text has it parsed as a whole once more ([`EditedDocument::into_checked_text`]).

use anyhook_model::document::{Member, Node, Value as NodeValue};
use anyhook_model::{Format, Span};
use anyhook_util::hash::sha256;
use serde_json::{Map, Value};

use crate::edit::{EditOptions, PlannedEdit, comparison_for, parse, plan_edit, with_bom};
use crate::error::EditError;
use crate::patch::{EditAction, Patch, inserted_texts};
use crate::path::{Key, display_path};
use crate::text::{Insertion, bom_len, from, slice, splice};
use crate::tree::{
    add_child, child_count, children, descend, node_at, node_at_mut, same_content, tree_from_json,
};
use crate::{json, toml, yaml};

#[derive(Debug, Clone)]
pub(crate) struct EditedDocument {
    text: String,
    format: Format,
    /// The tree of the text without its byte order mark, once it was needed.
    tree: Option<ParsedBody>,
    /// The hash of the text, if it is known.
    hash: Option<String>,
    /// Whether the text was parsed as a whole after the last edit.
    is_checked: bool,
}

/// The root of a text; none if the text is blank.
#[derive(Debug, Clone)]
struct ParsedBody(Option<Node>);

/// What was inserted into the text.
struct AppliedEdit {
    /// Offsets are those of the text before the edit.
    insertions: Vec<Insertion>,
    created: usize,
    preamble: Map<String, Value>,
}

impl EditedDocument {
    pub(crate) fn new(text: String, format: Format) -> Self {
        Self {
            text,
            format,
            tree: None,
            hash: None,
            is_checked: true,
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text, if it has the content of the tree.
    pub(crate) fn into_checked_text(self) -> Result<String, EditError> {
        if let (false, Some(ParsedBody(Some(tree)))) = (self.is_checked, &self.tree) {
            let parsed = parse(from(&self.text, bom_len(&self.text)), self.format)?;
            let comparison = comparison_for(self.format);
            if !parsed.is_some_and(|parsed| same_content(&parsed, tree, comparison)) {
                let at = display_path(&[]);
                return Err(EditError::Unsafe { at });
            }
        }
        Ok(self.text)
    }

    /// The value at `path`.
    pub(crate) fn get(&mut self, path: &[Key]) -> Result<Option<Value>, EditError> {
        self.load_tree()?;
        let body = from(&self.text, bom_len(&self.text));
        let Some(ParsedBody(Some(root))) = &self.tree else {
            return Ok(None);
        };
        match descend(root, body, path) {
            Ok((depth, node)) => Ok((depth == path.len()).then(|| node.to_json())),
            Err(EditError::NoElement { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Appends `value` to the array at `path`, which is created if it is missing, or
    /// sets a key that does not exist yet.
    pub(crate) fn edit(
        &mut self,
        action: EditAction,
        path: &[Key],
        value: &Value,
        options: &EditOptions,
    ) -> Result<Patch, EditError> {
        let before = match self.hash.take() {
            Some(hash) => hash,
            None => sha256(self.text.as_bytes()),
        };
        let bom = bom_len(&self.text);
        let applied = self.apply(action, path, std::slice::from_ref(value), options)?;
        let mut insertions = applied.insertions;
        for insertion in &mut insertions {
            insertion.at += bom;
        }
        let after = sha256(self.text.as_bytes());
        self.hash = Some(after.clone());
        Ok(Patch {
            format: self.format,
            action,
            path: path.to_vec(),
            value: value.clone(),
            created: applied.created,
            preamble: applied.preamble,
            spans: inserted_texts(&self.text, insertions),
            before,
            after,
        })
    }

    /// Appends all values to the array at `path`, which is created if it is missing.
    pub(crate) fn append_all(
        &mut self,
        path: &[Key],
        values: &[Value],
        options: &EditOptions,
    ) -> Result<(), EditError> {
        self.load_tree()?;
        self.hash = None;
        let mut roots = self.tree.iter().filter_map(|body| body.0.as_ref());
        let array = roots.find_map(|root| {
            let node = node_at(root, path)?;
            Some(child_count(node))
        });
        // How elements are separated shows only in an array that has one.
        let (first, rest) = match array {
            Some(_) => values.split_at(values.len().min(1)),
            None => (values, &[][..]),
        };
        for values in [first, rest] {
            if !values.is_empty() {
                self.apply(EditAction::Append, path, values, options)?;
            }
        }
        Ok(())
    }

    fn load_tree(&mut self) -> Result<(), EditError> {
        if self.tree.is_none() {
            let body = from(&self.text, bom_len(&self.text));
            self.tree = Some(ParsedBody(parse(body, self.format)?));
        }
        Ok(())
    }

    fn apply(
        &mut self,
        action: EditAction,
        path: &[Key],
        values: &[Value],
        options: &EditOptions,
    ) -> Result<AppliedEdit, EditError> {
        self.load_tree()?;
        let body = from(&self.text, bom_len(&self.text));
        let mut root = self.tree.take().and_then(|body| body.0);
        // A TOML text always has a root table; that of a blank text counts as none.
        if self.format == Format::Toml && body.trim().is_empty() {
            root = root.filter(|root| child_count(root) > 0);
        }
        let slashes = options.escape_slashes;
        let Some(mut root) = root else {
            return self.begin_document(action, path, values, options);
        };
        let planned = match plan_edit(body, &root, action, path, values) {
            Ok(planned) => planned,
            Err(error) => {
                self.tree = Some(ParsedBody(Some(root)));
                return Err(error);
            }
        };
        let applied = |insertions| AppliedEdit {
            insertions,
            created: planned.created,
            preamble: Map::new(),
        };
        if !matches!(self.format, Format::Toml | Format::Yaml) {
            let insertions = json::insert(body, &root, &planned, slashes);
            let added = read_back(body, self.format, &root, &planned, &insertions);
            let new = splice(body, &insertions);
            if let Some(added) = added {
                shift(&mut root, &insertions);
                add_children(&mut root, planned.container, added);
                self.text = with_bom(&self.text, &new);
                self.tree = Some(ParsedBody(Some(root)));
                self.is_checked = false;
                return Ok(applied(insertions));
            }
            return Err(EditError::Unsafe {
                at: display_path(path),
            });
        }
        let proposals = match self.format {
            Format::Yaml => Ok(vec![yaml::insert(body, &root, &planned)]),
            _ => toml::insert(body, &root, &planned),
        };
        let mut goal = root.clone();
        for value in &planned.values {
            add_child(
                &mut goal,
                planned.container,
                planned.key,
                tree_from_json(value),
            );
        }
        self.tree = Some(ParsedBody(Some(root)));
        self.accept_first(path, proposals?, &goal).map(applied)
    }

    /// The first edit of a text without a document.
    fn begin_document(
        &mut self,
        action: EditAction,
        path: &[Key],
        values: &[Value],
        options: &EditOptions,
    ) -> Result<AppliedEdit, EditError> {
        let body = from(&self.text, bom_len(&self.text));
        let mut goal = tree_from_json(&Value::Object(options.preamble.clone()));
        let planned = plan_edit(body, &goal, action, path, values)?;
        let created = planned.created + 1;
        let PlannedEdit {
            container,
            key,
            values,
            ..
        } = planned;
        for value in &values {
            add_child(&mut goal, container, key, tree_from_json(value));
        }
        let whole = goal.to_json();
        let insertions = match self.format {
            Format::Toml => toml::document(body, &whole)?,
            Format::Yaml => yaml::document(body, &whole),
            _ => json::document(body, &whole, options.escape_slashes),
        };
        let insertions = self.accept_first(path, vec![insertions], &goal)?;
        Ok(AppliedEdit {
            insertions,
            created,
            preamble: options.preamble.clone(),
        })
    }

    /// Makes the first proposal after which the text has the planned content.
    fn accept_first(
        &mut self,
        path: &[Key],
        proposals: Vec<Vec<Insertion>>,
        goal: &Node,
    ) -> Result<Vec<Insertion>, EditError> {
        let body = from(&self.text, bom_len(&self.text));
        for insertions in proposals {
            let new = splice(body, &insertions);
            if let Ok(Some(parsed)) = parse(&new, self.format)
                && same_content(&parsed, goal, comparison_for(self.format))
            {
                self.text = with_bom(&self.text, &new);
                self.tree = Some(ParsedBody(Some(parsed)));
                self.is_checked = true;
                return Ok(insertions);
            }
        }
        Err(EditError::Unsafe {
            at: display_path(path),
        })
    }
}

/// The new children of a container, located in the text after the insertions.
enum AddedChildren {
    Elements(Vec<Node>),
    Members(Vec<Member>),
}

/// Parses the end of the container, with a stand-in for the elements before it.
/// `None` if it does not have the planned content.
fn read_back(
    body: &str,
    format: Format,
    root: &Node,
    planned: &PlannedEdit<'_>,
    insertions: &[Insertion],
) -> Option<AddedChildren> {
    let container = node_at(root, planned.container)?;
    let last = children(container).last().map(|(_, child)| child.span.end);
    let start = last.unwrap_or(container.span.start + 1);
    let end = container.span.end;
    let head = match (&container.value, last.is_some()) {
        (NodeValue::Array(_), false) => "[",
        (NodeValue::Array(_), true) => "[0",
        (NodeValue::Object(_), false) => "{",
        (NodeValue::Object(_), true) if planned.key == Some("0") => "{\"1\":0",
        (NodeValue::Object(_), true) => "{\"0\":0",
        _ => return None,
    };
    let local = insertions.iter().map(|one| {
        let at = one.at.checked_sub(start).filter(|_| one.at < end)?;
        Some(Insertion::new(at, one.text.clone()))
    });
    let local: Vec<Insertion> = local.collect::<Option<_>>()?;
    let text = format!("{head}{}", splice(slice(body, start..end), &local));
    let mut parsed = parse(&text, format).ok()??;
    if parsed.span != Span::new(0, text.len()) {
        return None;
    }
    // From offsets in `text` to offsets in the whole.
    for_each_span(&mut parsed, &mut |span| {
        let moved = |at: usize| (at + start).saturating_sub(head.len());
        *span = Span::new(moved(span.start), moved(span.end));
        true
    });
    let skipped = usize::from(last.is_some());
    let is_planned = |node: &Node, value: &Value| {
        same_content(node, &tree_from_json(value), comparison_for(format))
    };
    let added = match parsed.value {
        NodeValue::Array(mut items) => AddedChildren::Elements(items.split_off(skipped)),
        NodeValue::Object(mut members) => AddedChildren::Members(members.split_off(skipped)),
        _ => return None,
    };
    let is_same = match &added {
        AddedChildren::Elements(items) => {
            planned.key.is_none()
                && items.len() == planned.values.len()
                && items
                    .iter()
                    .zip(&planned.values)
                    .all(|(a, b)| is_planned(a, b))
        }
        AddedChildren::Members(members) => {
            matches!((members.as_slice(), planned.values.as_slice()), ([member], [value])
                if planned.key == Some(member.key.as_str()) && is_planned(&member.value, value))
        }
    };
    is_same.then_some(added)
}

fn add_children(root: &mut Node, path: &[Key], added: AddedChildren) {
    match (node_at_mut(root, path).map(|node| &mut node.value), added) {
        (Some(NodeValue::Array(items)), AddedChildren::Elements(new)) => items.extend(new),
        (Some(NodeValue::Object(members)), AddedChildren::Members(new)) => members.extend(new),
        _ => {}
    }
}

/// Moves every position behind the insertions.
fn shift(root: &mut Node, insertions: &[Insertion]) {
    let first = insertions.iter().map(|one| one.at).min();
    let added_up_to = |is_counted: &dyn Fn(usize) -> bool| -> usize {
        let counted = insertions.iter().filter(|one| is_counted(one.at));
        counted.map(|one| one.text.len()).sum()
    };
    for_each_span(root, &mut |span| {
        let Span { start, end } = *span;
        if first.is_none_or(|first| end <= first) {
            return false;
        }
        *span = Span::new(
            start + added_up_to(&|at| at <= start),
            end + added_up_to(&|at| at < end),
        );
        true
    });
}

/// Calls `change` with the position of every node and key. What is inside a node is
/// left out if `change` returns `false` for it.
fn for_each_span(node: &mut Node, change: &mut dyn FnMut(&mut Span) -> bool) {
    if !change(&mut node.span) {
        return;
    }
    match &mut node.value {
        NodeValue::Array(items) => {
            for item in items {
                for_each_span(item, change);
            }
        }
        NodeValue::Object(members) => {
            for member in members {
                change(&mut member.key_span);
                for_each_span(&mut member.value, change);
            }
        }
        _ => {}
    }
}
