//! Every sample config: to its own agent and back nothing changes, to every
//! other agent nothing is lost unsaid, and it is known for what it is.

#![cfg(test)]

mod common;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhook_agents::Adapter;
use anyhook_agents::spec::ConfigShape;
use anyhook_convert::detect;
use anyhook_convert::{ConversionOptions, ConversionTarget, ConvertError, convert};
use common::samples;

fn to(adapter: &'static Adapter, variant: Option<&'static str>) -> ConversionTarget {
    ConversionTarget::Agent { adapter, variant }
}

#[test]
fn every_agent_has_samples() {
    let with: BTreeSet<&str> = samples()
        .iter()
        .map(|sample| sample.agent.spec.id.as_ref())
        .collect();
    let all: BTreeSet<&str> = anyhook_agents::all()
        .filter(|agent| !agent.spec.pseudo)
        // Their files are programs.
        .filter(|agent| {
            !matches!(
                agent.spec.config.shape,
                ConfigShape::Scripts | ConfigShape::Plugin
            )
        })
        .map(|agent| agent.spec.id.as_ref())
        .collect();
    assert_eq!(with, all);
}

#[test]
fn decoded_and_encoded_again_nothing_changes() {
    let mut wrong = String::new();
    for sample in samples() {
        let source = sample.source();
        match convert(
            &source,
            to(sample.agent, sample.variant()),
            &ConversionOptions::default(),
        ) {
            Ok(conversion) if conversion.document == sample.document => {}
            Ok(conversion) => {
                let _ = writeln!(
                    wrong,
                    "== {} ({:?})\n{}\n-- became\n{}",
                    sample.name,
                    sample.variant(),
                    sample.document,
                    conversion.document
                );
            }
            Err(error) => {
                let _ = writeln!(wrong, "== {}\n{error:#?}", sample.name);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn to_every_other_agent_nothing_is_lost_unsaid() {
    let mut wrong = String::new();
    for sample in samples() {
        let source = sample.source();
        for adapter in anyhook_agents::all() {
            let variants = adapter
                .spec
                .config
                .variant
                .keys()
                .map(|name| Some(name.as_ref()));
            for variant in std::iter::once(None).chain(variants) {
                match convert(&source, to(adapter, variant), &ConversionOptions::default()) {
                    Ok(_) | Err(ConvertError::NothingLeft { .. }) => {}
                    Err(ConvertError::Unfaithful { differences, .. }) => {
                        let _ = writeln!(
                            wrong,
                            "== {} to {} {variant:?}\n{differences:#?}",
                            sample.name, adapter.spec.id
                        );
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_sample_is_known_for_what_it_is() {
    let mut wrong = String::new();
    for sample in samples() {
        for path in [Some(sample.path.as_str()), None] {
            let guess = detect(path, &sample.document);
            let own = |agent: &&Adapter| agent.spec.id == sample.agent.spec.id;
            let ok = guess
                .as_ref()
                .is_some_and(|guess| guess.agent.iter().chain(&guess.rivals).any(own));
            // These names are those of several agents.
            let shared = ["hooks/hooks.json", ".github/hooks/"];
            let clear = path.is_some_and(|path| !shared.iter().any(|name| path.starts_with(name)));
            let ok = ok && (!clear || guess.as_ref().is_some_and(|guess| guess.rivals.is_empty()));
            if !ok {
                let _ = writeln!(wrong, "{} {path:?}: {guess:?}", sample.name);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
