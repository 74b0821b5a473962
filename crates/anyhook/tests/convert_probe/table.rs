//! Every pair of agents, every guard, every call.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;
use anyhook_convert::{
    Conversion, ConversionOptions, ConversionSource, ConversionTarget, ConversionWarning,
    ConvertError, WarningSeverity, convert,
};
use anyhook_model::Manifest;
use anyhook_testkit::Scratch;
use anyhook_testkit::reference_model::{Action, react};
use serde_json::Value;

use crate::calls::{NativeCall, captured, made_by, with_every_key};
use crate::execute::Executor;
use crate::guards::{Guard, guards, manifest_guards};

/// A cell that is wrong, with what is needed to see it again.
struct WrongCell {
    route: String,
    guard: String,
    call: String,
    details: String,
}

/// What came of the cells.
#[derive(Default)]
struct Counts {
    denied: AtomicUsize,
    /// Denied by the dispatcher.
    dispatched: AtomicUsize,
    critical: AtomicUsize,
    no_such_tool: AtomicUsize,
}

pub(crate) struct Table {
    executor: Executor,
    counts: Counts,
    wrong: Mutex<Vec<WrongCell>>,
    /// Guards whose conversion is critical, by route.
    critical: Mutex<BTreeMap<String, Vec<String>>>,
}

/// A converted config, or that there is none.
enum Converted {
    Document(Value, Vec<ConversionWarning>),
    Refused(String),
}

fn is_critical(warnings: &[ConversionWarning]) -> bool {
    warnings
        .iter()
        .any(|warning| warning.hook == Some(1) && warning.severity >= WarningSeverity::Critical)
}

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            executor: Executor::new(),
            counts: Counts::default(),
            wrong: Mutex::default(),
            critical: Mutex::default(),
        }
    }

    pub(crate) fn check(self) {
        // One source, to find out why a cell is wrong.
        let only = std::env::var("PROBE_SOURCE").ok();
        let is_wanted =
            |source: &&Adapter| only.as_deref().is_none_or(|only| only == source.spec.id);
        let sources: Vec<&'static Adapter> = clients().filter(is_wanted).collect();
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| self.check_manifests());
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
                        self.check_source(source);
                    }
                });
            }
        });
        self.report();
    }

    fn check_source(&self, source: &'static Adapter) {
        let scratch = &self.executor.scratch;
        let project = scratch.project().display().to_string();
        let mut calls = captured(source, &project);
        calls.extend(with_every_key(source, &calls));
        for mut guard in guards(source, &calls) {
            let text = guard
                .document
                .to_string()
                .replace("PROJECT/", &format!("{project}/"));
            guard.document = serde_json::from_str(&text).unwrap();
            scratch
                .exec(format!("guards/{}.sh", guard.id), &guard.script)
                .unwrap();
            let denied = calls.iter().filter(|call| {
                guard.is_about(call)
                    && self
                        .executor
                        .denies(source, &guard.document, &guard, call)
                        .is_ok()
            });
            let denied: Vec<&NativeCall> = denied.collect();
            if !denied.is_empty() {
                self.check_guard(source, &guard, &denied);
            }
        }
    }

    /// Guards that are written as a canonical manifest.
    fn check_manifests(&self) {
        let scratch = &self.executor.scratch;
        let sender = anyhook_agents::get("claude-code").unwrap();
        let calls = captured(sender, &scratch.project().display().to_string());
        for guard in manifest_guards() {
            scratch
                .exec(format!("guards/{}.sh", guard.id), &guard.script)
                .unwrap();
            let denied = calls.iter().filter(|call| {
                run_manifest(scratch, sender, &guard, &guard.document, call).is_ok()
            });
            let denied: Vec<&NativeCall> = denied.collect();
            if denied.is_empty() {
                let details = "  it never denies under the dispatcher".to_owned();
                self.report_wrong("canonical", &guard, &calls[0], details);
            }
            let manifest: Manifest = serde_json::from_value(guard.document.clone()).unwrap();
            let source = ConversionSource::canonical(manifest);
            let script = |_: &str| guard.readable_script();
            let options = ConversionOptions {
                script: Some(&script),
                ..ConversionOptions::default()
            };
            for target in clients() {
                let route = format!("canonical → {}", target.spec.id);
                let converted = to_target(&source, target, &options);
                self.check_cells(&route, &guard, target, &converted, &denied);
            }
        }
    }

    fn check_guard(&self, source: &'static Adapter, guard: &Guard, denied: &[&NativeCall]) {
        let script = |_: &str| guard.readable_script();
        let options = ConversionOptions {
            script: Some(&script),
            ..ConversionOptions::default()
        };
        let decoded = ConversionSource::decode(source, &guard.document, None);
        let mut canonical = convert(&decoded, ConversionTarget::Canonical, &options).unwrap();
        // As the command does it: the programs stay those of their agent.
        canonical.document["hooks"][0]["handler"]["dialect"] = source.spec.id.as_ref().into();
        let manifest: Manifest = serde_json::from_value(canonical.document.clone()).unwrap();
        let mut through = ConversionSource::canonical(manifest);
        through.warnings = canonical.warnings;
        self.check_dispatcher(
            source,
            guard,
            &canonical.document,
            &through.warnings,
            denied,
        );
        for target in clients() {
            if source.spec.id != target.spec.id {
                let route = format!("{} → {}", source.spec.id, target.spec.id);
                let converted = to_target(&decoded, target, &options);
                self.check_cells(&route, guard, target, &converted, denied);
            }
            let route = format!("{} → canonical → {}", source.spec.id, target.spec.id);
            let converted = to_target(&through, target, &options);
            self.check_cells(&route, guard, target, &converted, denied);
        }
    }

    /// Runs the canonical manifest under `anyhook run`, for the agent that the guard
    /// was written for.
    fn check_dispatcher(
        &self,
        source: &'static Adapter,
        guard: &Guard,
        document: &Value,
        warnings: &[ConversionWarning],
        denied: &[&NativeCall],
    ) {
        let own = denied.first().map(|call| (source, (*call).clone()));
        if let Some((agent, call)) = own {
            let route = format!("{} → canonical, run by {}", source.spec.id, agent.spec.id);
            if is_critical(warnings) {
                return self.count_critical(&route, guard);
            }
            match run_manifest(&self.executor.scratch, agent, guard, document, &call) {
                Ok(()) => {
                    self.counts.dispatched.fetch_add(1, Ordering::Relaxed);
                }
                Err(log) => {
                    let (event, payload) = &call.events[0];
                    let details =
                        format!("  manifest: {document}\n  {event} payload: {payload}\n{log}");
                    self.report_wrong(&route, guard, &call, details);
                }
            }
        }
    }

    fn count_critical(&self, route: &str, guard: &Guard) {
        self.counts.critical.fetch_add(1, Ordering::Relaxed);
        let mut critical = self.critical.lock().unwrap();
        let guards = critical.entry(route.to_owned()).or_default();
        if guards.last() != Some(&guard.label) {
            guards.push(guard.label.clone());
        }
    }

    fn check_cells(
        &self,
        route: &str,
        guard: &Guard,
        target: &'static Adapter,
        converted: &Converted,
        denied: &[&NativeCall],
    ) {
        if !self.executor.can_run(target) {
            return;
        }
        for call in denied {
            let calls = if call.canonical.source == target.spec.id {
                vec![(*call).clone()]
            } else {
                made_by(target, &call.canonical, &call.name)
            };
            if calls.is_empty() {
                self.counts.no_such_tool.fetch_add(1, Ordering::Relaxed);
            }
            for call in &calls {
                self.check_cell(route, guard, target, converted, call);
            }
        }
    }

    fn check_cell(
        &self,
        route: &str,
        guard: &Guard,
        target: &'static Adapter,
        converted: &Converted,
        call: &NativeCall,
    ) {
        let (document, warnings) = match converted {
            Converted::Document(document, warnings) => (document, warnings),
            Converted::Refused(why) => {
                return self.report_wrong(route, guard, call, format!("  not converted: {why}\n"));
            }
        };
        if is_critical(warnings) {
            return self.count_critical(route, guard);
        }
        match self.executor.denies(target, document, guard, call) {
            Ok(()) => {
                self.counts.denied.fetch_add(1, Ordering::Relaxed);
            }
            Err(log) => {
                let (_, payload) = &call.events[0];
                let warnings: Vec<String> = warnings
                    .iter()
                    .filter(|warning| warning.hook.is_some())
                    .map(|warning| format!("{} {}", warning.severity.as_str(), warning.field))
                    .collect();
                let details = format!(
                    "  converted: {document}\n  payload: {payload}\n{log}  warnings: {}\n",
                    warnings.join(", ")
                );
                self.report_wrong(route, guard, call, details);
            }
        }
    }

    fn report_wrong(&self, route: &str, guard: &Guard, call: &NativeCall, details: String) {
        self.wrong.lock().unwrap().push(WrongCell {
            route: route.to_owned(),
            guard: guard.label.clone(),
            call: call.name.clone(),
            details: format!(
                "  source: {}\n  script: {:?}\n{details}",
                guard.document, guard.script
            ),
        });
    }

    fn report(self) {
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        let mut wrong = self.wrong.into_inner().unwrap();
        wrong.sort_by(|left, right| (&left.route, &left.guard).cmp(&(&right.route, &right.guard)));
        println!("{} processes", count(&self.executor.started));
        println!(
            "{} calls denied, {} by the dispatcher, {} critical, {} without such a tool, {} wrong",
            count(&self.counts.denied),
            count(&self.counts.dispatched),
            count(&self.counts.critical),
            count(&self.counts.no_such_tool),
            wrong.len(),
        );
        if std::env::var_os("PROBE_CRITICAL").is_some() {
            for (route, guards) in self.critical.into_inner().unwrap() {
                println!("critical {route}: {}", guards.join("; "));
            }
        }
        let mut text = String::new();
        for same in
            wrong.chunk_by(|left, right| left.route == right.route && left.guard == right.guard)
        {
            let WrongCell {
                route,
                guard,
                call,
                details,
            } = &same[0];
            let _ = writeln!(
                text,
                "{route}: {guard} ({} calls): {call}\n{details}",
                same.len()
            );
        }
        assert!(wrong.is_empty(), "{text}");
    }
}

fn to_target(
    source: &ConversionSource,
    adapter: &'static Adapter,
    options: &ConversionOptions<'_>,
) -> Converted {
    let target = ConversionTarget::Agent {
        adapter,
        variant: None,
    };
    match convert(source, target, options) {
        Ok(Conversion {
            document, warnings, ..
        }) => Converted::Document(document, warnings),
        Err(ConvertError::NothingLeft { warnings }) => {
            Converted::Document(Value::Object(serde_json::Map::new()), warnings)
        }
        Err(ConvertError::Unfaithful { differences, .. }) => {
            Converted::Refused(format!("{differences:?}"))
        }
    }
}

/// Runs a manifest under the real dispatcher, in a project of its own. An error
/// says what happened instead of a deny.
fn run_manifest(
    shared: &Scratch,
    agent: &'static Adapter,
    guard: &Guard,
    document: &Value,
    call: &NativeCall,
) -> Result<(), String> {
    let scratch = Scratch::new().unwrap();
    scratch
        .exec(format!("guards/{}.sh", guard.id), &guard.script)
        .unwrap();
    scratch
        .file(".anyhook/hooks.json", &document.to_string())
        .unwrap();
    let project = scratch.project().display().to_string();
    let mut log = String::new();
    for (event, payload) in &call.events {
        let payload = payload.to_string();
        let payload = payload.replace(&shared.project().display().to_string(), &project);
        let arguments = ["run", "--agent", agent.spec.id.as_ref(), "--event", event];
        let output = scratch
            .command(env!("CARGO_BIN_EXE_anyhook"))
            .env("ANYHOOK_TRUST", "all")
            .run(arguments, &payload)
            .unwrap();
        let payload = serde_json::from_str(&payload).unwrap();
        let reaction = react(&agent.spec.id, event, &payload, &output.answer(), true);
        if reaction.action == Action::Blocked {
            return Ok(());
        }
        let _ = writeln!(log, "  {event}: {output:?}\n  {reaction:?}");
    }
    Err(log)
}
