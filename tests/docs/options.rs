//! Whether the `tilewright` commands of a page exist, with the options that they are given.

use std::collections::HashMap;

use libtest_mimic::Trial;

use super::page::Page;

/// The command lines of a page that name a command or an option that the program does not have. `help` gives the
/// output of a command line.
pub(crate) fn unknown(page: &Page, mut help: impl FnMut(&str) -> String) -> Vec<String> {
    let mut known: HashMap<String, String> = HashMap::new();
    let mut wrong = Vec::new();
    for (command, options) in page.lines().flat_map(uses) {
        let text = known.entry(command.clone()).or_insert_with(|| help(&format!("tilewright {command} --help 2>&1")));
        if !text.contains("Usage: tilewright") {
            wrong.push(format!("tilewright {command}"));
            continue;
        }
        let missing = options.into_iter().filter(|option| !has_option(text, option));
        wrong.extend(missing.map(|option| format!("tilewright {command} {option}")));
    }
    wrong
}

/// Whether a help page lists an option such as `--shape` or `-o`.
fn has_option(help: &str, option: &str) -> bool {
    option == "--help" || help.split([' ', '\n', ',', '=', '[']).any(|word| word == option)
}

/// The uses of the program in a command line: its command and the options after it.
fn uses(line: &str) -> Vec<(String, Vec<String>)> {
    let line = without_quotes(line.split(" # ").next().unwrap_or_default());
    let mut found = Vec::new();
    for part in line.split(['|', ';', '&']) {
        let mut words = part.split_whitespace().skip_while(|word| *word != "tilewright").skip(1).peekable();
        let Some(command) = words.next_if(|word| !word.starts_with('-')) else { continue };
        let options = words.filter(|word| word.len() > 1 && word.starts_with('-'));
        let options = options.map(|word| word.split('=').next().unwrap_or(word).to_owned());
        found.push((command.to_owned(), options.collect()));
    }
    found
}

/// The line without what stands in quotes.
fn without_quotes(line: &str) -> String {
    let mut plain = String::new();
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None => plain.push(c),
        }
    }
    plain
}

/// Tests of the search.
pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::test("an_option_that_does_not_exist_is_found", || {
        let help = |line: &str| match line {
            "tilewright map --help 2>&1" => "Usage: tilewright map [OPTIONS]\n  -o, --shape <SHAPE>\n".to_owned(),
            _ => "error: unrecognized subcommand\n".to_owned(),
        };
        let wrong = |line: &str| unknown(&Page::read(&format!("```sh\n{line}\n```\n")), help);
        assert!(wrong("tilewright map 'lambda i: [--x]' --shape 3 -o a.svg   # --y").is_empty());
        assert!(wrong("tilewright --version").is_empty());
        assert_eq!(wrong("tilewright map --shap 3 | cat -n"), ["tilewright map --shap"]);
        assert_eq!(wrong("cd a && tilewright mop --shape 3"), ["tilewright mop"]);
        Ok(())
    })]
}
