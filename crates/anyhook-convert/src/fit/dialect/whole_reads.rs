//! Whether a program looks at an object of the payload as a whole, or by keys that its
//! text does not show: it may then find in it what the target does not send.

use super::program_text::{is_word_letter, word_places};

/// How often an object may be given another name.
const MAX_NAMES: usize = 12;

/// Words after which a value is only tested for being there.
const TESTS_BEFORE: [&str; 5] = ["isinstance(", "typeof", "not", "!", "keyof"];
const TESTS_AFTER: [&str; 7] = ["is ", "==", "!=", "in ", "not in ", "instanceof", "&&"];

/// What may follow an object that is given another name as it is.
const WHOLE_VALUE_ENDS: [&str; 7] = [")", ";", ",", "|", "}", "or ", "??"];

/// Characters between an object and its key, in any language.
const KEY_GLUE_CHARS: &str = " \"'`\\)]?.[({},|/:->!@$";

/// Programs that look for a text in all of their input.
const TEXT_SEARCHES: [&str; 5] = ["grep", "egrep", "fgrep", "rg", "ack"];

/// Searches in all of a parsed input.
const SEARCHES_OF_PARSED: [&str; 10] = [
    " in json.dumps(",
    " in str(",
    "test(JSON.stringify(",
    "search(json.dumps(",
    "[..]",
    "[.. ",
    ".. |",
    "..|",
    "recurse",
    "leaf_paths",
];

/// Calls that return all of what a program gets.
const WHOLE_INPUTS: [&str; 8] = [
    "$(cat)",
    "$(</dev/stdin)",
    "$(cat -)",
    "$(cat /dev/stdin)",
    "stdin.read()",
    "STDIN.read",
    "readFileSync(0",
    "readFileSync('/dev/stdin'",
];

/// Whether the object is read in a way that does not name the key.
pub(super) fn reads_whole(text: &str, object: &str) -> bool {
    let mut names = vec![object.to_owned()];
    let mut next = 0;
    while let Some(name) = names.get(next).cloned() {
        next += 1;
        for (left, right) in word_places(text, &name) {
            match KeyAccess::at(text, left, right) {
                KeyAccess::Harmless => {}
                KeyAccess::Whole => return true,
                KeyAccess::Renamed(others) => {
                    for other in others {
                        if names.len() == MAX_NAMES {
                            return true;
                        }
                        if !names.contains(&other) {
                            names.push(other);
                        }
                    }
                }
            }
        }
    }
    false
}

/// What is done with an object in one place.
enum KeyAccess {
    /// One key is read, or nothing.
    Harmless,
    Whole,
    Renamed(Vec<String>),
}

impl KeyAccess {
    fn at(text: &str, left: &str, right: &str) -> Self {
        let line_start = left.rfind('\n').map_or(0, |end| end + 1);
        let before = left.get(line_start..).unwrap_or_default();
        let after = right.lines().next().unwrap_or_default();
        let is_bound = before.ends_with("as $");
        let is_taken_apart = before
            .rsplit_once('=')
            .is_some_and(|(target, _)| target.trim_end().ends_with('}') && !target.contains("..."));
        if is_bound
            || is_taken_apart
            || is_comment(before)
            || names_a_key(after)
            || is_definition(before)
        {
            return Self::Harmless;
        }
        let trimmed = before.trim_end_matches(['(', '"', '\'', ' ', '[', '.', '$', '{']);
        let is_tested = TESTS_BEFORE
            .iter()
            .any(|word| before.trim_end().ends_with(word) || trimmed.ends_with(word));
        let rest = after.trim_start_matches(['"', '\'', ')', ']', ' ', '`', '\\']);
        // The same without the end of a call around it, whose result is another value.
        let is_got = before.trim_end_matches(['"', '\'']).ends_with("get(");
        let near = after.trim_start_matches(['"', '\'', ' ', '`', '\\', '?']);
        let near = near
            .strip_prefix(if is_got { ')' } else { ']' })
            .unwrap_or(near);
        let near = near.trim_start();
        let is_key = after
            .trim_start_matches(['"', '\'', ' ', '`', '\\', '?'])
            .starts_with(':');
        if let Some(name) = rest
            .strip_prefix(':')
            .and_then(|rest| identifier(rest.trim_start()))
            && is_destructured(before)
        {
            return Self::Renamed(vec![name.to_owned()]);
        }
        let is_assigned = near.starts_with('=') && !near.starts_with("==");
        let is_compared = TESTS_AFTER.iter().any(|test| near.starts_with(test));
        let ends_destructuring = rest.starts_with(['}', ',']) && is_destructured(before);
        if is_tested || is_key || is_assigned || is_compared || ends_destructuring {
            return Self::Harmless;
        }
        if let Some(name) = rest.strip_prefix("as $").and_then(identifier) {
            return Self::Renamed(vec![name.to_owned()]);
        }
        let mut ends = WHOLE_VALUE_ENDS.iter();
        let is_all = rest.is_empty() || ends.any(|end| rest.starts_with(end));
        if let Some(name) = assigned_name(before).filter(|_| is_all) {
            return Self::Renamed(vec![name.to_owned()]);
        }
        parameters_of_call(text, before).map_or(Self::Whole, Self::Renamed)
    }
}

fn is_comment(before: &str) -> bool {
    let before = before.trim_start();
    before.starts_with('#')
        || before.starts_with("//")
        || before.starts_with('*')
        || before.contains(" # ")
}

/// Whether a key follows the object: `object.key`, `object["key"]`,
/// `object.get("key")`, `.object | .key`, `{key} = object` and the like.
fn names_a_key(after: &str) -> bool {
    let mut rest = after;
    for _ in 0..3 {
        let start = rest.trim_start_matches(|letter| KEY_GLUE_CHARS.contains(letter));
        let glue = rest.get(..rest.len() - start.len()).unwrap_or_default();
        // Every value of it, or a sum with something else.
        if glue.contains("[]") || glue.contains(" - ") {
            return false;
        }
        let Some(name) = identifier(start) else {
            return false;
        };
        let is_led = glue.ends_with(['.', '"', '\'', '`', '{']) || glue.ends_with("[:");
        // What ends the object's own key in quotes leads to nothing.
        let is_own_end = glue.trim_end().len() <= 1 && glue.starts_with(['"', '\'']);
        let tail = start.get(name.len()..).unwrap_or_default();
        if tail.starts_with('(') {
            rest = tail;
            continue;
        }
        if matches!(name, "if" | "then" | "select" | "empty" | "null") {
            rest = tail;
            continue;
        }
        let is_variable = glue.ends_with('$');
        // A part of a key, to which another is added.
        let rest = tail.trim_start_matches(['"', '\'', '`', ' ']);
        return is_led && !is_own_end && !is_variable && !rest.starts_with('+');
    }
    false
}

fn identifier(text: &str) -> Option<&str> {
    let end = text.find(|letter: char| !is_word_letter(letter));
    let name = text.get(..end.unwrap_or(text.len()))?;
    (!name.is_empty() && !name.starts_with(|letter: char| letter.is_ascii_digit())).then_some(name)
}

/// Whether a place is between the braces of `const { … } = payload`.
fn is_destructured(before: &str) -> bool {
    let Some(open) = before.rfind('{') else {
        return false;
    };
    let lead = before.get(..open).unwrap_or_default().trim_end();
    ["const", "let", "var", "(", "as"]
        .iter()
        .any(|word| lead.ends_with(word))
}

fn is_definition(before: &str) -> bool {
    ["def ", "function ", "func ", "fn ", "sub "]
        .iter()
        .any(|word| before.trim_start().starts_with(word) || before.contains(&format!(" {word}")))
        && before.contains('(')
}

/// The name that a line assigns to.
pub(super) fn assigned_name(before: &str) -> Option<&str> {
    let before = before.rsplit(';').next()?;
    let (target, value) = before.split_once('=')?;
    if value.starts_with('=') || target.ends_with(['!', '<', '>']) {
        return None;
    }
    // A value that is made of the object, and is not the object: a call with it.
    let target = target.trim_end().trim_end_matches(':').trim_end();
    let (target, _) = target.split_once(':').unwrap_or((target, ""));
    let start = target.rfind(|letter: char| !is_word_letter(letter));
    let name = target.get(start.map_or(0, |at| at + 1)..)?;
    identifier(name)
}

/// The parameters of the program's own function that gets the object.
fn parameters_of_call(text: &str, before: &str) -> Option<Vec<String>> {
    let (call, _) = before.rsplit_once('(')?;
    let start = call.rfind(|letter: char| !is_word_letter(letter));
    let name = identifier(call.get(start.map_or(0, |at| at + 1)..)?)?;
    let definition = ["def ", "function ", "func ", "fn "]
        .iter()
        .find_map(|word| text.split_once(&format!("{word}{name}(")))?;
    let (parameters, _) = definition.1.split_once(')')?;
    let names = parameters
        .split(',')
        .filter_map(|one| identifier(one.trim()));
    Some(names.map(str::to_owned).collect())
}

/// Whether the program looks for a text in all that it gets.
pub(super) fn searches_input(text: &str) -> bool {
    let is_search = |line: &str| {
        let mut searches = TEXT_SEARCHES
            .iter()
            .filter_map(|name| word_places(line, name).next());
        searches.any(|(_, pattern)| !has_key(pattern.split('|').next().unwrap_or_default()))
    };
    if SEARCHES_OF_PARSED
        .iter()
        .any(|search| text.contains(search))
    {
        return true;
    }
    text.lines().any(|line| {
        let Some(name) = assigned_name_of_input(line) else {
            return false;
        };
        text.lines().any(|line| {
            let mut places = word_places(line, name);
            places.any(|(left, right)| {
                let piped = right.split_once('|').map(|(between, rest)| {
                    between.chars().all(|letter| " \"'}".contains(letter))
                        && is_search(rest.split('|').next().unwrap_or_default())
                });
                let here = right.trim_start_matches(['"', '}']).trim_start();
                let in_python = left.trim_end().ends_with(" in") && !left.contains("for ");
                let matched = [
                    ".includes(",
                    ".find(",
                    ".match(",
                    ".indexOf(",
                    ".include?",
                    "=~",
                ]
                .iter()
                .any(|call| here.starts_with(call));
                let tested = left.ends_with(".test(") || left.contains("re.search(");
                let given = left
                    .rsplit_once("<<<")
                    .is_some_and(|(command, _)| is_search(command));
                piped == Some(true) || in_python || matched || tested || given
            })
        })
    })
}

fn assigned_name_of_input(line: &str) -> Option<&str> {
    let start = WHOLE_INPUTS.iter().find_map(|input| line.find(input))?;
    assigned_name(line.get(..start)?)
}

/// Whether a pattern has a key of a JSON object.
fn has_key(pattern: &str) -> bool {
    ["\":", "\" *:", "\"[[:space:]]*:", "\"\\s*:"]
        .iter()
        .any(|end| pattern.contains(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_the_text_names_are_no_whole() {
        for text in [
            "jq -r '.tool_input.command // empty'",
            "jq -r '.tool_input | .file_path // .path'",
            "jq -r '(.tool_input // {}).command'",
            "jq -e '.tool_input | has(\"description\")'",
            "jq -r '.tool_input as $i | $i.command'",
            "jq '.tool_input | {command}'",
            "p['tool_input']['command']",
            "p.get('tool_input', {}).get('command', '')",
            "tool_input = data.get(\"tool_input\", {})\ncommand = tool_input.get(\"command\", \"\")",
            "i = p['tool_input']\nif 'rm' in i['command']:",
            "if not isinstance(tool_input, dict):",
            "if p.get('tool_input') is None:",
            "if p['tool_input'] is None:",
            "if not tool_input:",
            "if \"tool_input\" in p and p[\"tool_input\"][\"command\"]:",
            "def check(tool_input):\n  return tool_input['command']\ncheck(p['tool_input'])",
            "const { tool_input } = p; tool_input.command",
            "const { command } = p.tool_input",
            "const { command = '' } = p.tool_input",
            "const { tool_input: input } = p\nif (input.command) {}",
            "p.tool_input?.command",
            "interface P { tool_input: { command: string } }",
            "p.dig(\"tool_input\", \"command\")",
            "p[:tool_input][:command]",
            "$p->{tool_input}{command}",
            "# reads tool_input from stdin",
            "case $payload in *'\"tool_input\":'*'\"command\":'*) exit 2 ;; esac",
            "rest=${payload#*'\"tool_input\":{'}",
        ] {
            assert!(!reads_whole(text, "tool_input"), "{text}");
        }
    }

    #[test]
    fn an_object_as_a_whole_is_seen() {
        for text in [
            "jq '.tool_input | to_entries[]'",
            "jq '.tool_input | tostring | test(\"x\")'",
            "jq -r '.tool_input' | grep x",
            "jq -e '[.tool_input[]] | join(\" \") | test(\"x\")'",
            "jq -e '.tool_input | .[] | .x'",
            "if set(p['tool_input']) - {'command', 'timeout'}:",
            "jq --arg k \"$1\" '.tool_input[$k]'",
            "for k, v in p['tool_input'].items():",
            "any('x' in v for v in p[\"tool_input\"].values())",
            "json.dumps(p['tool_input'])",
            "if 'x' in json.dumps(p['tool_input']):",
            "if str(p['tool_input']) == x:",
            "check(p[\"tool_input\"])",
            "i = p['tool_input']\ncheck(i)",
            "p['tool_input'].get(key, '')",
            "p['tool_input'][key]",
            "k=$2; v=$(jq -r --arg k \"$k\" '.tool_input[$k]')",
            "v = p['tool_input'].get(key)",
            "p['tool_input'].get('desc' + 'ription', '')",
            "[k for k in p['tool_input'] if k.startswith('desc')]",
            "for k in keys:\n  v = str(p['tool_input'][k])",
            "JSON.stringify(p.tool_input)",
            "Object.values(p.tool_input)",
            "const { command, ...rest } = p.tool_input",
            "INPUT=$(jq -c .tool_input)\necho \"$INPUT\" | grep -q x",
            "def check(given):\n  return str(given)\ncheck(p['tool_input'])",
        ] {
            assert!(reads_whole(text, "tool_input"), "{text}");
        }
    }

    #[test]
    fn a_search_in_all_of_the_input_is_seen() {
        for (text, is_search) in [
            ("p=$(cat)\necho \"$p\" | grep -q 'rm -rf'", true),
            ("p=$(cat)\ngrep -q rm <<<\"$p\"", true),
            (
                "p=$(cat)\nprintf %s \"${p}\" | jq .tool_input | grep x",
                false,
            ),
            (
                "p=$(cat)\necho \"$p\" | grep -o '\"command\":\"[^\"]*\"'",
                false,
            ),
            ("p=$(cat)\necho \"$p\" >>log", false),
            ("jq -e '[.. | strings] | any(test(\"x\"))'", true),
            ("if 'x' in json.dumps(p):", true),
            ("log.write(json.dumps(p))", false),
            ("raw = sys.stdin.read()\nif 'rm' in raw:", true),
            ("raw = sys.stdin.read()\np = json.loads(raw)", false),
            (
                "const raw = readFileSync(0, 'utf8')\nif (/x/.test(raw)) {}",
                true,
            ),
        ] {
            assert_eq!(searches_input(text), is_search, "{text}");
        }
    }
}
