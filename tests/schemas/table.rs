//! The tables of docs/schemas.md, and whether a document keeps to one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// What a value may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Any,
    Null,
    Bool,
    Number,
    Text,
    /// A number or a text.
    Extent,
    /// An object whose fields have rows of their own in the same table.
    Object,
    /// An object that the table of this heading describes.
    Shared(String),
    /// A list; each element is of one of these kinds.
    List(Box<Kind>),
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) kinds: Vec<Kind>,
    /// Whether a document may lack the field.
    pub(crate) is_optional: bool,
}

/// The rows of one heading, by path.
pub(crate) type Table = BTreeMap<String, Row>;

/// The tables of a page by heading. `Shared: pass` is found under its anchor, `shared-pass`.
pub(crate) fn read(page: &str) -> BTreeMap<String, Table> {
    let mut tables: BTreeMap<String, Table> = BTreeMap::new();
    let mut heading = String::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            heading = title
                .strip_prefix("Shared: ")
                .map_or(title.to_owned(), |name| format!("shared-{}", name.replace(' ', "-")));
            continue;
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, field, kinds, _meaning, _] = cells.as_slice() else { continue };
        let Some(path) = field.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) else { continue };
        let is_optional = kinds.ends_with(", optional");
        let kinds = kinds.trim_end_matches(", optional").split(" or ").filter(|kind| *kind != "false");
        let kinds = kinds.map(|text| kind(text).unwrap_or_else(|| panic!("`{path}`: no type `{text}`"))).collect();
        let old = tables.entry(heading.clone()).or_default().insert(path.to_owned(), Row { kinds, is_optional });
        assert!(old.is_none(), "`{path}` is listed twice under {heading}");
    }
    tables
}

fn kind(text: &str) -> Option<Kind> {
    if let Some(element) = text.strip_prefix("list of ").or_else(|| text.strip_prefix("lists of ")) {
        return Some(Kind::List(Box::new(kind(element)?)));
    }
    if let Some((_, anchor)) = text.split_once("](#") {
        return Some(Kind::Shared(anchor.trim_end_matches(')').to_owned()));
    }
    Some(match text.trim_end_matches('s') {
        "any" | "value" => Kind::Any,
        "null" => Kind::Null,
        "true" => Kind::Bool,
        "number" => Kind::Number,
        "text" => Kind::Text,
        "extent" => Kind::Extent,
        "object" => Kind::Object,
        _ => return None,
    })
}

/// Compares documents with the tables.
#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    tables: &'a BTreeMap<String, Table>,
    /// What does not fit.
    pub(crate) faults: BTreeSet<String>,
    /// The rows that some document has, as heading and path.
    pub(crate) seen: BTreeSet<(String, String)>,
}

impl<'a> Comparison<'a> {
    pub(crate) fn new(tables: &'a BTreeMap<String, Table>) -> Self {
        Self { tables, faults: BTreeSet::new(), seen: BTreeSet::new() }
    }

    /// Compares an object with the rows of a heading below a path, which is empty or ends with a point.
    pub(crate) fn object(&mut self, heading: &str, path: &str, object: &serde_json::Map<String, Value>) {
        let Some(table) = self.tables.get(heading) else {
            self.faults.insert(format!("no table `{heading}`"));
            return;
        };
        for (name, value) in object {
            let paths = [format!("{path}{name}"), format!("{path}*")];
            let found = paths.iter().find_map(|path| Some((path, table.get(path)?)));
            let Some((at, row)) = found else {
                self.faults.insert(format!("{heading}: `{}` is not documented: {value:.60}", paths[0]));
                continue;
            };
            self.seen.insert((heading.to_owned(), at.clone()));
            if !row.kinds.iter().any(|kind| fits(kind, value)) {
                self.faults.insert(format!("{heading}: `{at}` is not {:?}: {value:.60}", row.kinds));
            }
            row.kinds.iter().filter(|kind| fits(kind, value)).for_each(|kind| self.below(heading, at, kind, value));
        }
        let is_child = |at: &str| at.strip_prefix(path).is_some_and(|rest| !rest.contains('.') && rest != "*");
        for (at, _) in table.iter().filter(|(at, row)| is_child(at) && !row.is_optional) {
            if !object.contains_key(&at[path.len()..]) {
                self.faults.insert(format!("{heading}: a document lacks `{at}`, which is not marked as optional"));
            }
        }
    }

    fn below(&mut self, heading: &str, path: &str, kind: &Kind, value: &Value) {
        match (kind, value) {
            (Kind::Object, Value::Object(object)) => self.object(heading, &format!("{path}."), object),
            (Kind::Shared(shared), Value::Object(object)) => self.object(shared, "", object),
            (Kind::List(kind), Value::Array(values)) => {
                for value in values {
                    self.below(heading, &format!("{path}[]"), kind, value);
                }
            }
            _ => {}
        }
    }

    /// The rows that no document has.
    pub(crate) fn unseen(&self) -> Vec<String> {
        let rows = self.tables.iter().flat_map(|(heading, table)| table.keys().map(move |path| (heading, path)));
        let unseen = rows.filter(|(heading, path)| !self.seen.contains(&((*heading).clone(), (*path).clone())));
        unseen.map(|(heading, path)| format!("{heading} {path}")).collect()
    }
}

/// Whether a value is of a kind, lists down to their elements, objects without their fields.
fn fits(kind: &Kind, value: &Value) -> bool {
    match kind {
        Kind::Any => true,
        Kind::Null => value.is_null(),
        Kind::Bool => value.is_boolean(),
        Kind::Number => value.is_number(),
        Kind::Text => value.is_string(),
        Kind::Extent => value.is_number() || value.is_string(),
        Kind::Object | Kind::Shared(_) => value.is_object(),
        Kind::List(kind) => value.as_array().is_some_and(|values| values.iter().all(|value| fits(kind, value))),
    }
}
