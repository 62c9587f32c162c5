//! Changes of where values are kept on their way: registers, registers of two halves, copies of the input, a copy of the output.
//!
//! ```text
//! for i in range(7):            for i in range(7):
//!     B[0, i] = A[0, i]             R0[i % 2] = A[0, i]
//!                                   B[0, i] = R0[i % 2]
//! ```
//!
//! The buffers are allocated once, so all loops have to run in order.

use super::build::{OUTER, cols, in_order, plain_rows, row};
use super::nest::{Function, Node, any_list, replaced};
use super::recipe::{Base, How, Kind, Twist, View};
use super::rewrite::at_place;

/// Names of registers.
const REGISTERS: [&str; 3] = ["R0", "R1", "R2"];

/// Applies a change at its place, or at the next one that it fits; says whether there is any.
pub(super) fn apply(function: &mut Function, base: &Base, twist: Twist) -> bool {
    if !all_in_order(&mut function.body) {
        return false;
    }
    match twist.how {
        How::Register | How::Doubled => register(function, base, twist),
        How::CopyInput => copy_input(function, base),
        How::CopyRows => copy_rows(function, base),
        How::CopyOutput => copy_output(function, base),
        _ => false,
    }
}

/// Whether no two iterations run at once.
fn all_in_order(body: &mut Vec<Node>) -> bool {
    let concurrent = |node: &Node| matches!(node, Node::For { kind, .. } if !in_order(*kind));
    !any_list(body, &mut |list| list.iter().any(concurrent))
}

/// The type of the elements.
fn dtype(base: &Base) -> &'static str {
    if base.integers { "int32" } else { "float32" }
}

/// Adds a buffer of this shape.
fn allocate(function: &mut Function, base: &Base, name: &str, shape: &str, scope: &str) {
    let form = format!("T.alloc_buffer({shape}, \"{}\", scope=\"{scope}\")", dtype(base));
    function.locals.push((name.into(), form));
}

/// Whether a buffer has this name.
fn has(function: &Function, name: &str) -> bool {
    function.locals.iter().any(|(other, _)| other == name)
}

/// A stored value goes through a register; if it is doubled, iterations of the loop around the store take turns.
fn register(function: &mut Function, base: &Base, twist: Twist) -> bool {
    let Some(name) = REGISTERS.into_iter().find(|name| !has(function, name)) else { return false };
    let doubled = twist.how == How::Doubled;
    let done = at_place(&mut function.body, twist.place, &mut |list, at| match &mut list[at] {
        Node::For { var, body, .. } if doubled => {
            let index = format!("{var} % 2");
            let store = body.iter().position(|node| matches!(node, Node::Store { .. }));
            store.is_some_and(|store| through(body, store, name, &index))
        }
        _ => !doubled && through(list, at, name, "0"),
    });
    if done {
        allocate(function, base, name, if doubled { "(2,)" } else { "(1,)" }, "local");
    }
    done
}

/// A store of a value that a register holds first.
fn through(list: &mut Vec<Node>, at: usize, name: &'static str, index: &str) -> bool {
    let Node::Store { buffer, index: place, value } = list[at].clone() else { return false };
    let held = Node::Store { buffer: name, index: index.into(), value };
    list.splice(at..=at, [held, Node::Store { buffer, index: place, value: format!("{name}[{index}]") }]);
    true
}

/// Loops over a part of a matrix around a store.
fn copied(rows: Option<String>, cols: i64, store: Node) -> Node {
    let one = |var: &str, extent: String, body| Node::For {
        var: var.into(),
        kind: Kind::Serial,
        min: 0,
        extent,
        body: vec![body],
    };
    let row = one("cq", cols.to_string(), store);
    match rows {
        Some(rows) => one("cr", rows, row),
        None => row,
    }
}

/// `A` is copied first, and everything reads the copy.
fn copy_input(function: &mut Function, base: &Base) -> bool {
    let Some(rows) = plain_rows(base).filter(|_| !has(function, "L")) else { return false };
    rename(&mut function.body, "A", "L");
    let copy = Node::Store { buffer: "L", index: "cr, cq".into(), value: "A[cr, cq]".into() };
    function.body.insert(0, copied(Some(rows.clone()), cols(base) + 2, copy));
    allocate(function, base, "L", &format!("({rows}, {})", cols(base) + 2), "global");
    true
}

/// `B` is copied, everything uses the copy, and it is copied back.
fn copy_output(function: &mut Function, base: &Base) -> bool {
    if base.view != View::Plain || base.request.is_some() || has(function, "M") {
        return false;
    }
    let Some(rows) = plain_rows(base) else { return false };
    rename(&mut function.body, "B", "M");
    for node in &mut function.body {
        stores_to(node, "B", "M");
    }
    let there = Node::Store { buffer: "M", index: "cr, cq".into(), value: "B[cr, cq]".into() };
    let back = Node::Store { buffer: "B", index: "cr, cq".into(), value: "M[cr, cq]".into() };
    function.body.insert(0, copied(Some(rows.clone()), cols(base), there));
    function.body.push(copied(Some(rows.clone()), cols(base), back));
    allocate(function, base, "M", &format!("({rows}, {})", cols(base)), "global");
    true
}

/// Each iteration of the outer loop copies its row of `A` first.
fn copy_rows(function: &mut Function, base: &Base) -> bool {
    let (Some(rows), row) = (plain_rows(base), row(base)) else { return false };
    let own = format!("A[{row}, ");
    let whole = |node: &Node| matches!(node, Node::For { var, min, extent, .. } if var == OUTER && *min == base.outer.min && *extent == rows);
    let Some(at) = function.body.iter().position(whole).filter(|_| !has(function, "Q")) else { return false };
    let Node::For { body, .. } = &mut function.body[at] else { return false };
    let mut text = String::new();
    for node in &*body {
        node.each_text(&mut |part| text.extend([part, "\n"]));
    }
    if !text.contains(&own) || text.matches("A[").count() != text.matches(&own).count() {
        return false;
    }
    for node in &mut *body {
        node.map_text(&|text| text.replace(&own, "Q["));
    }
    let copy = Node::Store { buffer: "Q", index: "cq".into(), value: format!("{own}cq]") };
    body.insert(0, copied(None, cols(base) + 2, copy));
    allocate(function, base, "Q", &format!("({},)", cols(base) + 2), "local");
    true
}

/// Reads go to another buffer.
fn rename(body: &mut [Node], old: &str, new: &str) {
    for node in body {
        node.map_text(&|text| replaced(text, old, new));
    }
}

/// Stores go to another buffer.
fn stores_to(node: &mut Node, old: &str, new: &'static str) {
    match node {
        Node::Store { buffer, .. } if *buffer == old => *buffer = new,
        _ => node.body_mut().into_iter().flatten().for_each(|inner| stores_to(inner, old, new)),
    }
}
