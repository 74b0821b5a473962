use serde_json::{Value, json};

use super::*;

const TEXTS: &str = include_str!("../../../tests/redaction/texts.txt");
const SECRETS: &str = include_str!("../../../tests/redaction/secrets.txt");
const FORMS: &str = include_str!("../../../tests/redaction/forms.txt");
const HARMLESS: &str = include_str!("../../../tests/redaction/harmless.txt");

/// The rows of a corpus. Keys are split by dots, so that scanners for leaked keys
/// ignore the file.
fn rows(corpus: &str) -> impl Iterator<Item = String> {
    let lines = corpus.lines();
    let lines = lines.filter(|line| !line.starts_with("# ") && !line.is_empty());
    lines.map(|line| line.replace('·', "").replace('⏎', "\n"))
}

/// A text, and what is to remain of it.
fn cases() -> impl Iterator<Item = (String, String)> {
    rows(TEXTS).map(|row| {
        let text = row.trim_end_matches(" =>");
        match row.split_once(" => ") {
            Some((text, expected)) => (text.to_owned(), expected.to_owned()),
            None => (text.to_owned(), text.to_owned()),
        }
    })
}

fn redacted(text: &str) -> String {
    redacted_text(text).unwrap_or_else(|| text.to_owned())
}

fn clean(value: &Value) -> Value {
    redacted_json(value).unwrap()
}

#[test]
fn what_remains() {
    for (input, expected) in cases() {
        assert_eq!(redacted(&input), expected, "from: {input}");
    }
    assert!(cases().count() > 40);
}

#[test]
fn every_secret_begins_at_a_candidate() {
    let mut found = 0;
    let texts = [SECRETS, FORMS, HARMLESS].into_iter().flat_map(rows);
    let texts = texts.map(|row| row.replace(['«', '»'], ""));
    for input in texts.chain(cases().map(|(input, _)| input)) {
        for input in [input.to_uppercase(), input.to_lowercase(), input] {
            let bytes = input.as_bytes();
            for at in (0..bytes.len()).filter(|at| secret_at(bytes, *at).is_some()) {
                found += 1;
                assert_eq!(next_candidate(bytes, at), Some(at), "{at} in {input}");
            }
        }
    }
    assert!(found > 500, "{found}");
}

#[test]
fn values_are_redacted_by_name_at_any_depth() {
    let data = clean(&json!({
        "env": [{"DB_PASSWORD": "hunter22", "input_tokens": 12, "token": null}],
        "note": "max_tokens=4096",
        "access_token": "abcdef",
        "passwords": ["hunter22", ["correct horse"], 3],
        "OLDPWD": "/home/me",
    }));
    assert_eq!(
        data,
        json!({
            "env": [{"DB_PASSWORD": "[redacted:password]", "input_tokens": 12, "token": null}],
            "note": "max_tokens=4096",
            "access_token": "[redacted:token]",
            "passwords": ["[redacted:password]", ["[redacted:password]"], 3],
            "OLDPWD": "/home/me",
        })
    );
}

#[test]
fn two_secrets_as_names_stay_two_members() {
    let key = |part: &str| ["gh", "p_", &part.repeat(18)].concat();
    let data = clean(&json!({key("a1"): 1, key("b2"): 2, "n": 3}));
    assert_eq!(
        data,
        json!({"[redacted:github-token]": 1, "[redacted:github-token]+": 2, "n": 3})
    );
}

#[test]
fn long_texts_are_cut_at_a_character() {
    let data = clean(&Value::String("é".repeat(MAX_TEXT_BYTES)));
    let text = data.as_str().unwrap();
    assert!(text.len() < MAX_TEXT_BYTES + 64);
    assert!(text.ends_with(&format!("[cut, {} bytes in all]", MAX_TEXT_BYTES * 2)));
}

/// No part of a secret stays where a long text is cut, wherever in it that is.
#[test]
fn a_secret_at_the_cut_leaves_no_part() {
    let secret = ["gh", "p_", &"a1".repeat(18)].concat();
    for before in 1..secret.len() + 2 {
        let text = format!(
            "{} {secret} end {}",
            "x".repeat(MAX_TEXT_BYTES - before),
            "y".repeat(9000)
        );
        let data = clean(&Value::String(text));
        assert!(!data.as_str().unwrap().contains("gh"), "{before}");
    }
}

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/redaction.md");

/// The tables of docs/redaction.md.
#[test]
fn the_page_lists_every_rule() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let mark = "`UPDATE=1 cargo test -p anyhook-run redact`. -->\n";
    let head = page.split_once(mark).unwrap().0;
    let mut text = format!(
        "{head}{mark}\n## Tokens\n\n| kind | begins with | then at least |\n|---|---|---|\n"
    );
    for rule in tokens::TOKEN_RULES {
        let _ = writeln!(
            text,
            "| `{}` | `{}` | {} of: {} |",
            rule.kind,
            rule.prefix,
            rule.min_length,
            rule.alphabet.describe()
        );
    }
    text.push_str("\n## Tokens with a mark inside\n\n| kind | at least | mark | then at least |\n|---|---|---|---|\n");
    for rule in tokens::INFIX_RULES {
        let [before, after] = [rule.before, rule.after].map(|(alphabet, min)| match min {
            0 => "anything".to_owned(),
            _ => format!("{min} of: {}", alphabet.describe()),
        });
        let _ = writeln!(
            text,
            "| `{}` | {before} | `{}` | {after} |",
            rule.kind, rule.infix
        );
    }
    text.push_str("\nFurther by their structure: JSON web tokens (`jwt`), `discord-token`, `airtable-token`, `mailgun-key`.\n");
    text.push_str("\n## Options of programs\n\n| programs | option | form |\n|---|---|---|\n");
    for rule in options::OPTION_RULES {
        let programs: Vec<String> = rule
            .programs
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        let form = match rule.form {
            options::OptionForm::Word => format!("`{} X`", rule.option),
            options::OptionForm::Glued => format!("`{}X`", rule.option),
            options::OptionForm::Either => format!("`{0} X`, `{0}X`", rule.option),
            options::OptionForm::AfterName(mark) => {
                format!("`{} name{}X`", rule.option, char::from(mark))
            }
            options::OptionForm::AfterPass => format!("`{} pass:X`", rule.option),
        };
        let _ = writeln!(
            text,
            "| {} | `{}` | {form} |",
            programs.join(", "),
            rule.option
        );
    }
    assert!(!text.contains("unknown"), "an alphabet has no description");
    let mut golden = anyhook_testkit::Golden::default();
    golden.text(PAGE, &text).unwrap();
    golden.end();
}

/// Each row of [`options::OPTION_RULES`], for each of its programs, on a line and in a list.
#[test]
fn every_option_that_takes_a_password_hides_it() {
    let secret = "Zk3vQ9mW2xL7";
    for rule in options::OPTION_RULES {
        for program in rule.programs {
            let argument = match rule.form {
                options::OptionForm::Glued => format!("{}{secret}", rule.option),
                options::OptionForm::AfterName(mark) => {
                    format!("{} me{}{secret}", rule.option, char::from(mark))
                }
                options::OptionForm::AfterPass => format!("{} pass:{secret}", rule.option),
                _ => format!("{} {secret}", rule.option),
            };
            let line = format!("/usr/bin/{program} -v {argument} x.test");
            assert!(!redacted(&line).contains(secret), "{line}");
            if rule.form == options::OptionForm::Word {
                let list = json!([format!("/usr/bin/{program}"), rule.option, secret, "x"]);
                assert!(!clean(&list).to_string().contains(secret), "{list}");
            }
        }
    }
}
