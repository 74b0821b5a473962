//! Brace expansion: `{a,b}` and `{1..3}`.

use super::{Atom, MAX_EXPANSIONS};

/// Parts of a word with braces.
const MAX_BRACE_ATOMS: usize = 1024;

/// Expands `{a,b}` and `{1..3}` from the inside out; `None` if that gives too many
/// words.
pub(super) fn expand_braces(atoms: Vec<Atom<'_>>) -> Option<Vec<Vec<Atom<'_>>>> {
    if atoms.len() > MAX_BRACE_ATOMS {
        return None;
    }
    let mut done = Vec::new();
    let mut waiting = vec![atoms];
    let mut steps = 0;
    while let Some(mut word) = waiting.pop() {
        steps += 1;
        if steps > 4 * MAX_EXPANSIONS || done.len() > MAX_EXPANSIONS {
            return None;
        }
        // One pass: groups that are no lists become text at once.
        let mut opens: Vec<usize> = Vec::new();
        let mut group = None;
        let mut index = 0;
        while let Some(atom) = word.get(index) {
            match atom {
                Atom::Character('{') => opens.push(index),
                Atom::Character('}') => {
                    if let Some(open) = opens.pop()
                        && let Some(items) = brace_items(word.get(open + 1..index)?)
                    {
                        group = Some((open, index, items));
                        break;
                    }
                }
                _ => {}
            }
            index += 1;
        }
        let Some((open, close, items)) = group else {
            // What is left of braces is text.
            for atom in &mut word {
                match atom {
                    Atom::Character('{') => *atom = Atom::Quoted("{"),
                    Atom::Character('}') => *atom = Atom::Quoted("}"),
                    _ => {}
                }
            }
            done.push(word);
            continue;
        };
        if items.len() > MAX_EXPANSIONS {
            return None;
        }
        for item in items.into_iter().rev() {
            let mut expanded = word.get(..open)?.to_vec();
            expanded.extend(item);
            expanded.extend_from_slice(word.get(close + 1..)?);
            waiting.push(expanded);
        }
    }
    Some(done)
}

/// The alternatives of the inside of a brace group; `None` if it is no list.
fn brace_items<'w>(inside: &[Atom<'w>]) -> Option<Vec<Vec<Atom<'w>>>> {
    let is_comma = |atom: &Atom<'_>| matches!(atom, Atom::Character(','));
    if inside.iter().any(is_comma) {
        return Some(inside.split(is_comma).map(<[Atom<'_>]>::to_vec).collect());
    }
    let text: Option<String> = inside
        .iter()
        .map(|atom| match atom {
            Atom::Character(character) => Some(*character),
            _ => None,
        })
        .collect();
    let text = text?;
    let (from, to) = text.split_once("..")?;
    let to = to.split("..").next()?;
    let letters = |from: char, to: char| -> Vec<Vec<Atom<'w>>> {
        (from.min(to)..=from.max(to))
            .map(|letter| vec![Atom::Character(letter)])
            .collect()
    };
    if let (Ok(from), Ok(to)) = (from.parse::<i64>(), to.parse::<i64>()) {
        let (low, high) = (from.min(to), from.max(to));
        // A few of a long range stand for all of it.
        let numbers =
            (low..=high.min(low.saturating_add(3))).chain((high > low + 3).then_some(high));
        return Some(
            numbers
                .map(|number| number.to_string().chars().map(Atom::Character).collect())
                .collect(),
        );
    }
    let (mut first, mut last) = (from.chars(), to.chars());
    match (first.next(), first.next(), last.next(), last.next()) {
        (Some(from), None, Some(to), None) if from.is_ascii() && to.is_ascii() => {
            Some(letters(from, to))
        }
        _ => None,
    }
}
