//! Which events a matcher is for, one case per file in `cases/matching`.

use std::fs;
use std::path::Path;

use anyhook_model::{HookEvent, Matcher, explain, matches};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    matcher: Option<Matcher>,
    /// Each with what `explain` must say in it.
    matches: Vec<(HookEvent, String)>,
    rejects: Vec<(HookEvent, String)>,
}

#[test]
fn cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/matching");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let case: Case = serde_json::from_str(&fs::read_to_string(&path).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let matched = case.matches.iter().map(|event| (event, true));
        let rejected = case.rejects.iter().map(|event| (event, false));
        for ((event, why), expected) in matched.chain(rejected) {
            let verdict = explain(case.matcher.as_ref(), event);
            let place = path.display();
            assert_eq!(
                verdict.matches, expected,
                "{place}: {event:?}: {}",
                verdict.why
            );
            assert_eq!(
                matches(case.matcher.as_ref(), event),
                expected,
                "{place}: {event:?}"
            );
            assert!(
                verdict.why.contains(why.as_str()),
                "{place}: {} should say {why}",
                verdict.why
            );
            count += 1;
        }
    }
    assert!(count > 20, "{count} checks");
}
