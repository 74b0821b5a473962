//! `anyhook convert`: one agent's hook config as another's.

mod input;
mod output;

use std::path::PathBuf;

use anyhook_agents::Adapter;
use anyhook_agents::spec::Shape;
use anyhook_convert::{ConvertError, Options, Severity, Source, Target, Warning, convert};
use anyhow::anyhow;
use serde_json::{Value, json};

use crate::cli::Verdict;
use crate::render::Terminal;
use input::Input;

/// Convert a hook config of one agent to that of another
///
/// The converted config goes to stdout, what it could not carry to stderr.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  anyhook convert .claude/settings.json --to cursor
  anyhook convert .claude/settings.json --to all
  anyhook convert .anyhook/hooks.yaml --to codex -o . --merge")]
pub struct Args {
    /// A config file, a folder of them, or `-` for stdin
    #[arg(default_value = "-")]
    input: String,
    /// Whose config it is: an agent's slug, `canonical` or `contract` [default: by path and shape]
    #[arg(long, value_name = "AGENT")]
    from: Option<String>,
    /// The agent to convert to, `canonical`, `contract`, or `all` for a table of losses
    #[arg(long, value_name = "AGENT")]
    to: String,
    /// An older file format of the target, where it has several
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Write a file; for a folder: to the place in it where the agent looks
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Add the hooks to the file that is there, keeping all that it says
    #[arg(long, requires = "output")]
    merge: bool,
    /// Replace the file that is there
    #[arg(long, requires = "output", conflicts_with = "merge")]
    force: bool,
    /// Note in a canonical manifest whose language each program speaks
    #[arg(long)]
    keep_dialect: bool,
    /// Exit with 1 on any warning
    #[arg(long)]
    strict: bool,
    /// Print output and warnings as one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let input = Input::read(&args.input, terminal.colour_err() && !args.json)?;
    let source = match input.decode(args.from.as_deref()) {
        Ok(source) => source,
        Err(error) if args.json => {
            terminal.json(
                &json!({"output": null, "warnings": [], "verified": false, "error": format!("{error:#}")}),
            )?;
            return Ok(Verdict::Findings);
        }
        Err(error) => return Err(error),
    };
    if args.to == "all" {
        return all(args, &source, &input, terminal);
    }
    let (adapter, target) = target(&args.to, args.variant.as_deref())?;
    let script = |command: &str| input.script(command);
    let options = Options {
        script: Some(&script),
        keep_dialect: args.keep_dialect,
    };
    let conversion = match convert(&source, target, &options) {
        Ok(conversion) => conversion,
        Err(error) => return refuse(args, terminal, &error),
    };
    let files = output::files(adapter, &conversion.document, args);
    if let Some(place) = &args.output {
        for path in output::write(place, adapter, args, &conversion, &files)? {
            if !args.json {
                terminal.note(&format!("wrote {}", path.display()));
            }
        }
    }
    if args.json {
        let output: Value = match (
            adapter.map(|adapter| adapter.config(args.variant.as_deref()).shape),
            files.as_slice(),
        ) {
            (Some(Shape::Plugin), [file]) => json!(file.text),
            _ => conversion.document.clone(),
        };
        terminal
            .json(&json!({"output": output, "warnings": conversion.warnings, "verified": true}))?;
    } else {
        if args.output.is_none() {
            for file in &files {
                if let (Some(name), true) = (&file.name, files.len() > 1) {
                    terminal.line(&format!("# {name}"));
                }
                terminal.text(&file.text);
            }
        }
        tell(terminal, &conversion.warnings);
    }
    let failed = conversion
        .warnings
        .iter()
        .any(|warning| warning.severity == Severity::Error);
    let any = conversion
        .warnings
        .iter()
        .any(|warning| warning.severity > Severity::Info);
    Ok(if failed || (args.strict && any) {
        Verdict::Findings
    } else {
        Verdict::Good
    })
}

/// What stands in the way, in full; there is no output.
fn refuse(args: &Args, terminal: &Terminal, error: &ConvertError) -> anyhow::Result<Verdict> {
    let (warnings, message) = match error {
        ConvertError::NothingLeft { warnings } => (
            warnings,
            format!(
                "nothing of `{}` can be carried to `{}`",
                args.input, args.to
            ),
        ),
        ConvertError::Unfaithful {
            differences,
            warnings,
        } => {
            let list: Vec<String> = differences
                .iter()
                .map(|one| {
                    format!(
                        "  hook {}, {}: `{}` became `{}`",
                        one.hook, one.field, one.expected, one.found
                    )
                })
                .collect();
            (
                warnings,
                format!(
                    "the output would not say what the source says, so there is none; this is a defect of anyhook:\n{}",
                    list.join("\n")
                ),
            )
        }
    };
    if args.json {
        terminal.json(
            &json!({"output": null, "warnings": warnings, "verified": false, "error": message}),
        )?;
    } else {
        tell(terminal, warnings);
        terminal.failure(&message);
    }
    Ok(Verdict::Findings)
}

fn target(name: &str, variant: Option<&str>) -> anyhow::Result<(Option<&'static Adapter>, Target)> {
    if name == "canonical" {
        return Ok((None, Target::Canonical));
    }
    let adapter = super::agents::find(name)?;
    let variant = match variant {
        None => None,
        Some(wanted) => {
            let known: Vec<&'static str> = adapter
                .spec
                .config
                .variant
                .keys()
                .map(AsRef::as_ref)
                .collect();
            let found = known.iter().find(|name| **name == wanted).copied();
            Some(found.ok_or_else(|| {
                anyhow!(
                    "{} has no format `{wanted}`; it has: {}",
                    adapter.spec.name,
                    known.join(", ")
                )
            })?)
        }
    };
    Ok((Some(adapter), Target::Agent { adapter, variant }))
}

/// One block per hook, on stderr.
fn tell(terminal: &Terminal, warnings: &[Warning]) {
    let mut sorted: Vec<&Warning> = warnings.iter().collect();
    sorted.sort_by_key(|warning| warning.hook);
    for block in sorted.chunk_by(|left, right| left.hook == right.hook) {
        let hook = block.first().and_then(|warning| warning.hook);
        let name = block.first().and_then(|warning| warning.name.as_deref());
        let title = match (hook, name) {
            (None, _) => "the file".to_owned(),
            (Some(hook), Some(name)) => format!("hook {hook} `{name}`"),
            (Some(hook), None) => format!("hook {hook}"),
        };
        terminal.note(&terminal.bold_err(&title));
        for warning in block {
            let strategy = match (warning.capability, warning.strategy) {
                (Some(capability), Some(strategy)) => format!(
                    " [{capability}: {}; another with `degradation: {{ {capability}: … }}`]",
                    strategy.as_str()
                ),
                _ => String::new(),
            };
            let severity = terminal.severity(warning.severity.as_str());
            terminal.note(&format!(
                "  {severity} {}: {}{strategy}",
                warning.field, warning.message
            ));
        }
    }
}

/// What each agent would lose, in one table.
fn all(
    args: &Args,
    source: &Source,
    input: &Input,
    terminal: &Terminal,
) -> anyhow::Result<Verdict> {
    let script = |command: &str| input.script(command);
    let options = Options {
        script: Some(&script),
        keep_dialect: false,
    };
    let total = source.manifest.hooks.len();
    let mut rows = Vec::new();
    let mut json = Vec::new();
    let mut losses = false;
    for adapter in anyhook_agents::all() {
        let result = convert(
            source,
            Target::Agent {
                adapter,
                variant: None,
            },
            &options,
        );
        let (carried, warnings) = match result {
            Ok(conversion) => (conversion.carried, conversion.warnings),
            Err(
                ConvertError::NothingLeft { warnings } | ConvertError::Unfaithful { warnings, .. },
            ) => (0, warnings),
        };
        let count = |severity: Severity| {
            warnings
                .iter()
                .filter(|warning| warning.severity == severity)
                .count()
        };
        losses |= warnings
            .iter()
            .any(|warning| warning.severity > Severity::Info);
        let worst: Vec<String> = warnings
            .iter()
            .filter(|warning| warning.severity >= Severity::Critical)
            .filter_map(|warning| Some(format!("{}:{}", warning.hook?, warning.field)))
            .collect();
        rows.push(vec![
            adapter.spec.id.to_string(),
            format!("{carried}/{total}"),
            (count(Severity::Critical) + count(Severity::Error)).to_string(),
            count(Severity::Warning).to_string(),
            count(Severity::Info).to_string(),
            worst.join(" "),
        ]);
        json.push(json!({"agent": adapter.spec.id, "hooks": total, "carried": carried, "warnings": warnings}));
    }
    if args.json {
        terminal.json(&json)?;
    } else {
        terminal.table(
            &[
                "agent",
                "hooks",
                "critical",
                "warnings",
                "notes",
                "weakened or lost (hook:field)",
            ],
            &rows,
        );
    }
    Ok(if args.strict && losses {
        Verdict::Findings
    } else {
        Verdict::Good
    })
}
