//! Links between the documents: the file exists, and so does the heading after `#`.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;

/// The documents at and below a folder that are ours.
fn documents(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["", "docs", "docs/guide", "fuzz"] {
        let entries = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        found.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    found.sort();
    found
}

/// The text outside of fences.
fn prose(text: &str) -> String {
    let mut inside = false;
    let is_prose = |line: &&str| {
        let fence = line.starts_with("```");
        inside ^= fence;
        !inside && !fence
    };
    text.lines().filter(is_prose).flat_map(|line| [line, "\n"]).collect()
}

/// The targets of the links of a page.
fn targets(text: &str) -> Vec<String> {
    let prose = prose(text);
    let after = prose.split("](").skip(1);
    after.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

/// The anchors of a page's headings: small letters, digits, `-` and `_`; blanks become `-`.
fn anchors(text: &str) -> Vec<String> {
    let prose = prose(text);
    let headings = prose.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
        _ => None,
    };
    headings.map(|heading| heading.chars().filter_map(kept).collect()).collect()
}

/// The links of a page that lead nowhere.
fn broken(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let leads_nowhere = |target: &String| {
        if target.starts_with("http") {
            return false;
        }
        let (file, anchor) = target.split_once('#').map_or((target.as_str(), None), |(file, at)| (file, Some(at)));
        let path = if file.is_empty() { page.to_owned() } else { page.parent().unwrap().join(file) };
        match (fs::read_to_string(path), anchor) {
            (Err(_), _) => true,
            (Ok(_), None) => false,
            (Ok(text), Some(anchor)) => !anchors(&text).iter().any(|known| known == anchor),
        }
    };
    targets(&text).into_iter().filter(leads_nowhere).collect()
}

/// Tests of all documents, and of the search.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("links_between_documents_lead_somewhere", || {
            let pages = documents(Path::new(env!("CARGO_MANIFEST_DIR")));
            assert!(pages.len() > 15, "only {pages:?}");
            for page in pages {
                assert_eq!(broken(&page), Vec::<String>::new(), "{}", page.display());
            }
            Ok(())
        }),
        Trial::test("a_link_that_leads_nowhere_is_found", || {
            let folder = tempfile::tempdir()?;
            let page = folder.path().join("a.md");
            let text = "# One\n## Shared: `x` 2\n[a](#one) [b](#shared-x-2) [c](a.md#one) [d](https://x.y)\n\
                        ```\n[e](none.md)\n```\n[f](none.md)\n[g](#two)\n";
            fs::write(&page, text)?;
            assert_eq!(broken(&page), ["none.md", "#two"]);
            Ok(())
        }),
    ]
}
