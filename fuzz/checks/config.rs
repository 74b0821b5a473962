//! Checks that any text can be read as an agent's config and converted without unreported differences.

use anyhook_convert::{
    ConversionOptions, ConversionSource, ConversionTarget, ConvertError, convert, detect,
};
use anyhook_model::document::{self, Format};

pub(crate) fn check(data: &[u8]) {
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
            let source = ConversionSource::decode(adapter, &document, variant);
            let converted = convert(
                &source,
                ConversionTarget::Agent { adapter, variant },
                &ConversionOptions::default(),
            );
            if let Err(ConvertError::Unfaithful { differences, .. }) = converted {
                panic!("{} {variant:?}: {differences:?}", adapter.spec.id);
            }
        }
    }
    // All pairs of agents would be too slow: the input selects one.
    let pick = data.iter().fold(0usize, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(usize::from(*byte))
    });
    let agents: Vec<_> = anyhook_agents::all().collect();
    let (from, to) = (
        agents[pick % agents.len()],
        agents[(pick / 64) % agents.len()],
    );
    let source = ConversionSource::decode(from, &document, None);
    let converted = convert(
        &source,
        ConversionTarget::Agent {
            adapter: to,
            variant: None,
        },
        &ConversionOptions::default(),
    );
    if let Err(ConvertError::Unfaithful { differences, .. }) = converted {
        panic!("{} to {}: {differences:?}", from.spec.id, to.spec.id);
    }
    let _ = convert(
        &source,
        ConversionTarget::Canonical,
        &ConversionOptions::default(),
    );
}
