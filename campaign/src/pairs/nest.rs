//! A small syntax tree of TVMScript whose expressions are text: enough to restructure loops, and printed as a function.
//!
//! ```text
//! For { var: "i", kind: Serial, min: -1, extent: "3", body: [Store { buffer: "B", index: "i + 1", value: "A[i + 1]" }] }
//!
//! for i in T.serial(-1, 2):
//!     B[i + 1] = A[i + 1]
//! ```

use std::fmt::Write;

use super::recipe::Kind;

/// A function.
#[derive(Clone, Debug, Default)]
pub(super) struct Function {
    /// The parameters, in order.
    pub(super) params: Vec<Param>,
    /// Names of symbolic extents.
    pub(super) symbols: Vec<&'static str>,
    /// The attributes of the function, as the text of a dictionary.
    pub(super) attrs: Option<&'static str>,
    /// Assumptions, each a condition.
    pub(super) premises: Vec<String>,
    /// Buffers declared in the body: the name and the text of the declaration.
    pub(super) locals: Vec<(String, String)>,
    /// The body.
    pub(super) body: Vec<Node>,
}

/// A parameter.
#[derive(Clone, Debug)]
pub(super) enum Param {
    /// An `int32`.
    Scalar(&'static str),
    /// A buffer: its name, and the arguments of `match_buffer` after the handle.
    Buffer(&'static str, String),
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// A loop over `extent` values from `min`.
    For { var: String, kind: Kind, min: i64, extent: String, body: Vec<Node> },
    /// The body runs if all conditions hold, evaluated from left to right.
    If { conditions: Vec<String>, body: Vec<Node> },
    /// Binds a value to a name.
    Let { var: String, value: String, body: Vec<Node> },
    /// `buffer[index] = value`.
    Store { buffer: &'static str, index: String, value: String },
}

impl Node {
    /// The statements inside; none of a store.
    pub(super) fn body_mut(&mut self) -> Option<&mut Vec<Node>> {
        match self {
            Self::For { body, .. } | Self::If { body, .. } | Self::Let { body, .. } => Some(body),
            Self::Store { .. } => None,
        }
    }

    /// Applies a function to every expression, those inside included.
    pub(super) fn map_text(&mut self, change: &impl Fn(&str) -> String) {
        match self {
            Self::For { extent, .. } => *extent = change(extent),
            Self::If { conditions, .. } => conditions.iter_mut().for_each(|condition| *condition = change(condition)),
            Self::Let { value, .. } => *value = change(value),
            Self::Store { index, value, .. } => (*index, *value) = (change(index), change(value)),
        }
        self.body_mut().into_iter().flatten().for_each(|inner| inner.map_text(change));
    }

    /// Visits every expression, those inside included.
    pub(super) fn each_text(&self, visit: &mut impl FnMut(&str)) {
        match self {
            Self::For { extent, .. } => visit(extent),
            Self::If { conditions, .. } => conditions.iter().for_each(|condition| visit(condition)),
            Self::Let { value, .. } => visit(value),
            Self::Store { index, value, .. } => [index, value].into_iter().for_each(|text| visit(text)),
        }
        if let Self::For { body, .. } | Self::If { body, .. } | Self::Let { body, .. } = self {
            for inner in body {
                inner.each_text(visit);
            }
        }
    }

    /// Replaces a name by an expression, in parentheses.
    pub(super) fn substitute(&mut self, name: &str, by: &str) {
        self.map_text(&|text| replaced(text, name, &format!("({by})")));
    }
}

/// The text with every occurrence of a name replaced.
pub(super) fn replaced(text: &str, name: &str, by: &str) -> String {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.';
    let (mut done, mut word) = (String::new(), String::new());
    for letter in text.chars().chain(['\n']) {
        if is_word(letter) {
            word.push(letter);
            continue;
        }
        done.push_str(if word == name { by } else { &word });
        word.clear();
        done.push(letter);
    }
    done.pop();
    done
}

/// Whether a name occurs in the text.
pub(super) fn mentions(text: &str, name: &str) -> bool {
    replaced(text, name, "") != text
}

/// Visits every statement list, outer ones first, until the function returns true; says whether it did.
pub(super) fn any_list(nodes: &mut Vec<Node>, visit: &mut impl FnMut(&mut Vec<Node>) -> bool) -> bool {
    visit(nodes) || nodes.iter_mut().filter_map(Node::body_mut).any(|inner| any_list(inner, visit))
}

impl Function {
    /// The function as TVMScript.
    pub(super) fn text(&self) -> String {
        let handle = |name: &str| format!("{}_handle", name.to_lowercase());
        let param = |param: &Param| match param {
            Param::Scalar(name) => format!("{name}: T.int32"),
            Param::Buffer(name, _) => format!("{}: T.handle", handle(name)),
        };
        let params: Vec<String> = self.params.iter().map(param).collect();
        let mut text = format!("from tvm.script import tir as T\n\n@T.prim_func\ndef main({}):\n", params.join(", "));
        let mut line = |line: String| text.extend(["    ", &line, "\n"]);
        self.symbols.iter().for_each(|name| line(format!("{name} = T.int32()")));
        for param in &self.params {
            if let Param::Buffer(name, form) = param {
                line(format!("{name} = T.match_buffer({}, {form})", handle(name)));
            }
        }
        if let Some(attrs) = self.attrs {
            line(format!("T.func_attr({attrs})"));
        }
        self.locals.iter().for_each(|(name, form)| line(format!("{name} = {form}")));
        self.premises.iter().for_each(|premise| line(format!("assert {premise}, \"premise\"")));
        self.body.iter().for_each(|node| print(node, 1, &mut text));
        text
    }
}

/// Prints a statement at a depth.
fn print(node: &Node, depth: usize, text: &mut String) {
    let head = match node {
        Node::For { var, kind, min, extent, .. } => {
            let end =
                extent.parse::<i64>().map_or_else(|_| format!("{extent} + {min}"), |extent| (min + extent).to_string());
            let range = if *min == 0 { extent.clone() } else { format!("{min}, {end}") };
            match kind.thread() {
                Some(thread) => format!("for {var} in T.thread_binding({range}, thread=\"{thread}\"):"),
                None => format!("for {var} in {}({range}):", kind.callee()),
            }
        }
        Node::If { conditions, .. } => format!("if {}:", conditions.join(" and ")),
        Node::Let { var, value, .. } => format!("with T.LetStmt({value}) as {var}:"),
        Node::Store { buffer, index, value } => format!("{buffer}[{index}] = {value}"),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{:indent$}{head}", "", indent = 4 * depth);
    if let Node::For { body, .. } | Node::If { body, .. } | Node::Let { body, .. } = node {
        if body.is_empty() {
            let _ = writeln!(text, "{:indent$}T.evaluate(0)", "", indent = 4 * depth + 4);
        }
        for inner in body {
            print(inner, depth + 1, text);
        }
    }
}
