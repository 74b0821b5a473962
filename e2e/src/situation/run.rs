//! Runs the sessions of a situation in one client.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;

use serde_json::json;
use tempfile::TempDir;

use super::facts::Evidence;
use super::readme::{self, ChangedFiles};
use super::{Situation, SituationCheck};
use crate::bridge;
use crate::client::Lack;
use crate::command::{run_for_all_output, run_to_success};
use crate::error::{AtPath, Error, Result};
use crate::hook::Rule;
use crate::placeholder::Placeholders;
use crate::proof::{Kept, Proof, report_kept, session_error};
use crate::report::{Check, Verdict};
use crate::sandbox::Sandbox;
use crate::scenario::{Scenario, Step};
use crate::session::{Outcome, Session};

/// What `anyhook install` printed.
pub(super) const INSTALL_FILE: &str = "install.txt";
/// The exit code and the report of `anyhook doctor`.
pub(super) const DOCTOR_FILE: &str = "doctor.json";

const NATIVE_REASON: &str = "REASON-OWN the client's own hook says no";

/// Runs a situation: all checks in one session, except those whose deny ends the run.
pub fn run_situation(
    proof: &Proof<'_>,
    situation: &Situation,
    kept: Kept<'_>,
) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    let mut shared = Vec::new();
    let mut alone = Vec::new();
    for check in &situation.check {
        if let Some(lack) = lacking(proof, situation, check) {
            checks.push(Check::new(
                &check.name,
                match see_lack(proof, lack)? {
                    Ok(()) => Verdict::Cannot(lack.why.clone()),
                    Err(seen) => Verdict::Failed(seen),
                },
            ));
        } else if check.denies && proof.client.expect.deny_ends_run {
            alone.push(vec![check]);
        } else {
            shared.push(check);
        }
    }
    if !shared.is_empty() {
        alone.insert(0, shared);
    }
    for group in alone {
        let outcome = run_session(proof, situation, &group)?;
        report_kept(&outcome, &situation.name, kept);
        checks.extend(judge(proof, &outcome, &group)?);
    }
    checks.sort_by_key(|check| {
        let mut names = situation.check.iter();
        names.position(|known| known.name == check.name)
    });
    Ok(checks)
}

/// What the client lacks for a check, if anything.
fn lacking<'a>(
    proof: &Proof<'a>,
    situation: &Situation,
    check: &SituationCheck,
) -> Option<&'a Lack> {
    let threads = check.threads.iter().flat_map(|thread| &thread.steps);
    let roles = check.steps.iter().chain(threads).flat_map(Step::roles);
    let mut names: Vec<&str> = roles.collect();
    names.extend(situation.modes.iter().map(String::as_str));
    names.extend(situation.again.as_deref());
    if situation.install.len() > 1 {
        names.extend(situation.install.iter().map(String::as_str));
    }
    let lacks = &proof.client.setup.lacks;
    names.into_iter().find_map(|name| lacks.get(name))
}

/// Confirms a lack where that is possible.
fn see_lack(proof: &Proof<'_>, lack: &Lack) -> Result<std::result::Result<(), String>> {
    let Some(absence) = &lack.seen else {
        return Ok(Ok(()));
    };
    proof.harness.cache.install_client(proof.client)?;
    let folders = proof.harness.cache.path_folders(proof.client);
    let sandbox = Sandbox::new(&folders, false)?;
    let (program, args) = absence
        .command
        .split_first()
        .ok_or_else(|| Error::NoResult("an empty command".to_owned()))?;
    let mut help = sandbox.command(program);
    let help = run_for_all_output(help.args(args))?;
    Ok(if help.contains(&absence.word) {
        Err(format!(
            "`{}` mentions `{}`: see what the client can do now",
            absence.command.join(" "),
            absence.word
        ))
    } else {
        Ok(())
    })
}

fn run_session(
    proof: &Proof<'_>,
    situation: &Situation,
    checks: &[&SituationCheck],
) -> Result<Outcome> {
    let expect = &proof.client.expect;
    let mut scenario = Scenario::new([]);
    for check in checks {
        scenario.steps.extend(check.steps.iter().cloned());
        scenario.threads.extend(check.threads.iter().cloned());
    }
    scenario.steps.push(Step::Say("Done.".to_owned()));

    let server = situation
        .daemon
        .then(|| proof.program.with_server())
        .transpose()?;
    let program = server.as_ref().unwrap_or(proof.program);
    let programs = write_programs(&situation.programs)?;
    let changed = RefCell::new(ChangedFiles::new());
    let mut session = proof
        .session_without_anyhook(&situation.project)
        .scenario(scenario)
        .prepare(|sandbox| {
            if situation.readme {
                *changed.borrow_mut() = readme::follow(sandbox)?;
                return Ok(());
            }
            prepare(proof, situation, sandbox)
        })
        .path_first(programs.path())
        .prepare_path(program.folder());
    if situation.native_deny.is_none() {
        session = session.without(&expect.install.instead_of);
    }
    if !situation.without_anyhook {
        session = session.path(program.folder());
    }
    if situation.daemon || situation.via_daemon {
        session = session
            .daemon(proof.program.folder().join("anyhook"))
            .env(bridge::SERVER_VARIABLE, bridge::SERVER);
    }
    if let Some(policy) = &situation.managed {
        session = session
            .home_file(".managed/policy.yaml", policy)
            .env("ANYHOOK_MANAGED_DIR", "@home@/.managed");
    }
    if let Some(folder) = &situation.start_in {
        session = session.start_in(folder);
    }
    for mode in &situation.modes {
        session = session.mode(mode);
    }
    for mode in &situation.optional_modes {
        if proof.client.setup.modes.contains_key(mode) {
            session = session.mode(mode);
        }
    }
    if let Some(mode) = &situation.again {
        session = session.again(mode);
    }
    if let Some(file) = &situation.interrupt_when {
        session = session.interrupt_when(file);
    }
    if let Some(file) = &situation.ends {
        session = session.ends(file);
    }
    if let Some(text) = &situation.native_deny {
        session = with_native_hooks(session, proof, text);
    }
    let outcome = session.at_once(situation.at_once).run()?;
    if situation.readme {
        readme::uninstall(&outcome.sandbox, &changed.borrow())?;
    }
    Ok(outcome)
}

/// A folder with these programs.
fn write_programs(programs: &BTreeMap<String, String>) -> Result<TempDir> {
    let folder = bridge::create_program_folder()?;
    for (name, script) in programs {
        bridge::write_script(&folder.path().join(name), &format!("#!/bin/sh\n{script}\n"))?;
    }
    Ok(folder)
}

/// Hooks of the client's own, which deny what contains the text.
fn with_native_hooks<'a>(session: Session<'a>, proof: &Proof<'a>, text: &str) -> Session<'a> {
    let hooks = &proof.client.setup.hooks;
    let mut placeholders = Placeholders::default();
    placeholders.set("reason", NATIVE_REASON);
    session.native_hooks().rule(
        Rule::on(&hooks.pre_tool)
            .contains(text)
            .stdout(placeholders.fill_value(&hooks.deny)),
    )
}

fn prepare(proof: &Proof<'_>, situation: &Situation, sandbox: &Sandbox) -> Result<()> {
    bridge::run_anyhook(sandbox, &["trust", "--yes"])?;
    if let Some(script) = &situation.setup {
        run_to_success(sandbox.command("sh").args(["-e", "-c", script]))?;
    }
    let mut said = String::new();
    let own_scopes = situation.install.iter();
    for scope in own_scopes.filter(|_| !situation.only_in_other_files) {
        let mut args = proof.client.expect.install.args.clone();
        if situation.via_daemon {
            args.extend(bridge::via_daemon(sandbox));
        }
        said.push_str(&bridge::install_only(
            sandbox,
            proof.client.slug(),
            proof.client.install_scope(scope),
            &args,
        )?);
    }
    let others = situation.other_agents.iter();
    for other in others.filter(|other| *other != proof.client.slug()) {
        for scope in &situation.install {
            bridge::install_only(sandbox, other, scope, &[])?;
        }
    }
    let path = sandbox.run.join(INSTALL_FILE);
    fs::write(&path, said).at("write", path)?;
    if situation.doctor {
        let folder = situation.start_in.as_deref().unwrap_or(".");
        let mut doctor = sandbox.command("anyhook");
        doctor.current_dir(sandbox.project.join(folder)).args([
            "doctor",
            "--agent",
            proof.client.slug(),
            "--json",
        ]);
        let output = doctor.output().map_err(|source| Error::Start {
            program: "anyhook".to_owned(),
            source,
        })?;
        let report = json!({
            "exit": output.status.code(),
            "report": String::from_utf8_lossy(&output.stdout),
        });
        let path = sandbox.run.join(DOCTOR_FILE);
        fs::write(&path, report.to_string()).at("write", path)?;
    }
    Ok(())
}

fn judge(proof: &Proof<'_>, outcome: &Outcome, checks: &[&SituationCheck]) -> Result<Vec<Check>> {
    let records = bridge::read_journal(outcome)?;
    let mut placeholders = Placeholders::default();
    placeholders.set("home", outcome.sandbox.home.to_string_lossy());
    placeholders.set("run", outcome.sandbox.run.to_string_lossy());
    let evidence = Evidence {
        outcome,
        records: &records,
        placeholders,
        repeats_prompt: proof.client.expect.repeats_prompt,
        slug: proof.client.slug(),
    };
    let error = session_error(outcome);
    Ok(checks
        .iter()
        .map(|check| {
            if let Some(error) = &error {
                return Check::new(&check.name, Verdict::failed(error));
            }
            let always = evidence.hold(&check.always);
            let held = evidence.hold(&check.holds);
            match always {
                Err(seen) => Check::new(&check.name, Verdict::Failed(seen)),
                Ok(()) => proof.client.expect.judge(&check.name, held, &records),
            }
        })
        .collect())
}
