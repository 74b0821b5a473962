//! `anyhook-e2e`: lists the clients, installs them, runs the checks in them.

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhook_e2e::bridge::Program;
use anyhook_e2e::cache::latest;
use anyhook_e2e::captures;
use anyhook_e2e::client::Client;
use anyhook_e2e::error::{Error, Result};
use anyhook_e2e::inside::Job;
use anyhook_e2e::isolation::Isolation;
use anyhook_e2e::page;
use anyhook_e2e::proof::{Proof, newest_build};
use anyhook_e2e::report::{Check, Line, aligned, table};
use anyhook_e2e::session::Lab;
use anyhook_e2e::smoke::smoke;

const USAGE: &str = "\
usage: anyhook-e2e run [CLIENT…] [OPTIONS]        run the checks, in all clients or in those named
       anyhook-e2e selftest [CLIENT…] [OPTIONS]   break renderings on purpose: the checks must notice
       anyhook-e2e install [CLIENT…] [--latest]   only install the clients into the cache
       anyhook-e2e list                           the clients, their versions, what is installed

  --binary PATH  the anyhook under test, instead of the newest build
  --all          those clients as well that run only when they are named
  --latest       the newest version of each client instead of the pinned one
  --proof PATH   write the page of the proof
  --captures     store the payloads whose shape is new in the agents' folders
  --keep         leave the folders of the sessions in place, and say where they are
  --plain        no namespaces, as on systems that do not allow them
";

/// The words of the command line.
#[derive(Default)]
struct Options {
    command: String,
    names: Vec<String>,
    binary: Option<PathBuf>,
    proof: Option<PathBuf>,
    all: bool,
    latest: bool,
    captures: bool,
    keep: bool,
    plain: bool,
}

impl Options {
    fn read(mut args: impl Iterator<Item = String>) -> Option<Options> {
        let mut options = Options::default();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--binary" => options.binary = Some(args.next()?.into()),
                "--proof" => options.proof = Some(args.next()?.into()),
                "--all" => options.all = true,
                "--latest" => options.latest = true,
                "--captures" => options.captures = true,
                "--keep" => options.keep = true,
                "--plain" => options.plain = true,
                unknown if unknown.starts_with("--") => return None,
                _ if options.command.is_empty() => options.command = arg,
                _ => options.names.push(arg),
            }
        }
        Some(options)
    }
}

fn main() -> ExitCode {
    let Some(options) = Options::read(env::args().skip(1)) else {
        return usage();
    };
    let done = match (options.command.as_str(), options.names.as_slice()) {
        ("run", _) => run(&options),
        ("selftest", _) => selftest(&options),
        ("install", _) => install(&options),
        ("list", []) => list(),
        // Started by a session, inside its isolation.
        ("inside", [job]) => Job::read(Path::new(job))
            .and_then(|job| job.perform())
            .map(|()| true),
        _ => return usage(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            tell(&format!("error: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    tell(USAGE);
    ExitCode::from(2)
}

/// To standard error: progress and complaints.
fn tell(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// To standard output: results.
fn show(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

fn chosen(options: &Options) -> Result<Vec<Client>> {
    let mut clients = Client::all()?;
    if let Some(name) = options
        .names
        .iter()
        .find(|name| !clients.iter().any(|client| client.slug() == *name))
    {
        return Err(Error::NoClient(name.clone()));
    }
    clients.retain(|client| {
        if options.names.is_empty() {
            options.all || client.pin.only_named.is_none()
        } else {
            options.names.iter().any(|name| name == client.slug())
        }
    });
    if options.latest {
        for client in &mut clients {
            client.pin.version = latest(&client.pin.npm)?;
        }
    }
    Ok(clients)
}

fn lab(options: &Options) -> Result<Lab> {
    let mut lab = Lab::locate()?;
    lab.keep = options.keep;
    if options.plain {
        lab.isolation = Isolation::Plain("as asked".to_owned());
    }
    if let Isolation::Plain(why) = &lab.isolation {
        tell(&format!(
            "no network namespace ({why}): dead proxies instead\n"
        ));
    }
    Ok(lab)
}

fn program(options: &Options) -> Result<Program> {
    let binary = options.binary.clone().or_else(newest_build);
    let binary = binary.ok_or(Error::NotBuilt("anyhook"))?;
    tell(&format!("anyhook: {}\n", binary.display()));
    Program::copy_of(&binary)
}

fn run(options: &Options) -> Result<bool> {
    let lab = lab(options)?;
    let program = program(options)?;
    let mut lines = Vec::new();
    let mut shapes = Vec::new();
    for client in &chosen(options)? {
        tell(&format!("{} {} …\n", client.slug(), client.pin.version));
        let mut line = Line {
            client: client.slug().to_owned(),
            version: client.pin.version.clone(),
            seconds: 0.0,
            checks: Vec::new(),
            note: client.expect.no_adapter.clone(),
            error: None,
        };
        // Installing is no part of the sessions' time.
        let done = lab.cache.install_client(client).and_then(|()| {
            let began = Instant::now();
            let done = checks(&lab, client, &program, options, &mut shapes);
            line.seconds = began.elapsed().as_secs_f64();
            done
        });
        match done {
            Ok(checks) => line.checks = checks,
            Err(error) => line.error = Some(error.to_string()),
        }
        tell(&line.summary());
        lines.push(line);
    }
    show(&table(&lines));
    if !shapes.is_empty() {
        show(&format!(
            "\npayloads that are not as they were captured:\n{}",
            shapes.concat()
        ));
    }
    if let Some(path) = &options.proof {
        page::write(path, &lines)?;
    }
    Ok(!lines.is_empty() && lines.iter().all(Line::is_good))
}

fn checks(
    lab: &Lab,
    client: &Client,
    program: &Program,
    options: &Options,
    shapes: &mut Vec<String>,
) -> Result<Vec<Check>> {
    let kept = |name: &str, folder: &Path| tell(&format!("  {name}: {}\n", folder.display()));
    let (mut checks, outcome) = smoke(lab, client)?;
    if let Some(folder) = outcome.scratch.kept() {
        kept("smoke", folder);
    }
    for change in captures::compare(client.slug(), &outcome, options.captures)? {
        shapes.push(format!("{}: {change}\n", client.slug()));
    }
    if client.expect.no_adapter.is_none() {
        let proof = Proof {
            lab,
            client,
            program,
        };
        checks.extend(proof.run(&mut { kept })?);
    }
    Ok(checks)
}

/// Breaks what expect.toml says to break, and wants to see the checks go red.
fn selftest(options: &Options) -> Result<bool> {
    let lab = lab(options)?;
    let program = program(options)?;
    let mut good = true;
    for client in &chosen(options)? {
        let proof = Proof {
            lab: &lab,
            client,
            program: &program,
        };
        if client.expect.sabotage.is_empty() {
            continue;
        }
        let failed = proof.control()?;
        if !failed.is_empty() {
            good = false;
            let failed = failed.join(", ");
            show(&format!(
                "{}: fails without sabotage: {failed}\n",
                client.slug()
            ));
        }
        for sabotage in &client.expect.sabotage {
            let unnoticed = proof.sabotage(sabotage)?;
            good &= unnoticed.is_empty();
            let said = if unnoticed.is_empty() {
                "noticed".to_owned()
            } else {
                format!("NOT NOTICED by {}", unnoticed.join(", "))
            };
            show(&format!("{}: {}: {said}\n", client.slug(), sabotage.name));
        }
    }
    Ok(good)
}

fn install(options: &Options) -> Result<bool> {
    let lab = Lab::locate()?;
    for client in chosen(options)? {
        tell(&format!("{} {} …\n", client.slug(), client.pin.version));
        lab.cache.install_client(&client)?;
    }
    Ok(true)
}

fn list() -> Result<bool> {
    let lab = Lab::locate()?;
    let mut rows = vec![
        ["client", "package", "version", "installed", "note"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for client in Client::all()? {
        let installed = if lab.cache.has(&client.package()) {
            "yes"
        } else {
            "no"
        };
        rows.push(vec![
            client.slug().to_owned(),
            client.pin.npm.clone(),
            client.pin.version.clone(),
            installed.to_owned(),
            client.pin.only_named.clone().unwrap_or_default(),
        ]);
    }
    show(&aligned(&rows));
    Ok(true)
}
