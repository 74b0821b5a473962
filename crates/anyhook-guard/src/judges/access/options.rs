//! Values of options that name files.

use crate::shell::{Invocation, ResolvedWord};

/// `-t DIR` of `cp`, `mv`, `install` and `ln`.
pub(super) fn target_option(invocation: &Invocation) -> Option<ResolvedWord> {
    for (index, word) in invocation.words.iter().enumerate().skip(1) {
        if let Some(value) = word.text.strip_prefix("--target-directory=") {
            return Some(ResolvedWord::new(value));
        }
        let is_cluster =
            word.text.starts_with('-') && !word.text.starts_with("--") && word.text.ends_with('t');
        if is_cluster || word.text == "--target-directory" {
            return invocation.words.get(index + 1).cloned();
        }
    }
    None
}

/// The value of an option, in the next word or after `=`.
pub(super) fn option_word(invocation: &Invocation, names: &[&str]) -> Option<ResolvedWord> {
    for (index, word) in invocation.words.iter().enumerate().skip(1) {
        if names.contains(&word.text.as_str()) {
            return invocation.words.get(index + 1).cloned();
        }
        if let Some((option, value)) = word.text.split_once('=')
            && names.contains(&option)
        {
            return Some(ResolvedWord::new(value));
        }
    }
    None
}

/// The file of that name in a folder; `host:path/name` counts as well.
pub(super) fn file_in(folder: &ResolvedWord, source: &ResolvedWord) -> ResolvedWord {
    let base = source
        .text
        .trim_end_matches('/')
        .rsplit(['/', ':'])
        .next()
        .unwrap_or_default();
    ResolvedWord::new(format!("{}/{base}", folder.text.trim_end_matches('/')))
}

/// Whether a word is the value of an option.
pub(super) fn follows_option(invocation: &Invocation, word: &ResolvedWord) -> bool {
    let at = invocation.words.iter().position(|other| other == word);
    at.and_then(|at| invocation.words.get(at.wrapping_sub(1)))
        .is_some_and(|before| before.text.starts_with('-') && before.text != "--")
}
