//! What must hold for any text that is offered as an agent's config.

use anyhook_convert::{ConvertError, Options, Source, Target, convert, detect};
use anyhook_model::document::{self, Format};

pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Some(document) = document::parse(&text, Format::Jsonc).0 else {
        return;
    };
    let document = document.to_json();
    let _ = detect(None, &document);
    let _ = detect(Some(".cursor/hooks.json"), &document);
    for adapter in anyhook_agents::all() {
        let variants = adapter
            .spec
            .config
            .variant
            .keys()
            .map(|name| Some(name.as_ref()));
        for variant in std::iter::once(None).chain(variants) {
            let source = Source::decode(adapter, &document, variant);
            let back = convert(
                &source,
                Target::Agent { adapter, variant },
                &Options::default(),
            );
            if let Err(ConvertError::Unfaithful { differences, .. }) = back {
                panic!("{} {variant:?}: {differences:?}", adapter.spec.id);
            }
        }
    }
    // One way to another agent is as much as an input of this size is worth.
    let pick = data.iter().fold(0usize, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(usize::from(*byte))
    });
    let agents: Vec<_> = anyhook_agents::all().collect();
    let (from, to) = (
        agents[pick % agents.len()],
        agents[(pick / 64) % agents.len()],
    );
    let source = Source::decode(from, &document, None);
    let there = convert(
        &source,
        Target::Agent {
            adapter: to,
            variant: None,
        },
        &Options::default(),
    );
    if let Err(ConvertError::Unfaithful { differences, .. }) = there {
        panic!("{} to {}: {differences:?}", from.spec.id, to.spec.id);
    }
    let _ = convert(&source, Target::Canonical, &Options::default());
}
