//! Queries as text: standalone SMT-LIB 2 files.
//!
//! The goal that `x % 8 < 8` gives, with the exact encoding:
//!
//! ```text
//! (set-logic ALL)
//! (declare-const v0 Int)
//! (assert (not (< (mod v0 8) 8)))
//! (check-sat)
//! ```
//!
//! Every file is one query of a certificate, in the part of SMT-LIB 2 that Z3 and cvc5 share. The same text without
//! comments and status is the key of the memo.

use crate::encode::{Node, NodeId, Op, Query, Sort};
use std::fmt::Write;

/// The operator's name in SMT-LIB (a table), in a query over bit-vectors or over integers. Comparisons of bit-vectors
/// and `Shr` are signed, `Div` and `Mod` unsigned.
pub fn operator_name(op: Op, over_bits: bool) -> &'static str {
    match op {
        Op::Add if over_bits => "bvadd",
        Op::Sub if over_bits => "bvsub",
        Op::Neg if over_bits => "bvneg",
        Op::Mul if over_bits => "bvmul",
        Op::Div if over_bits => "bvudiv",
        Op::Mod if over_bits => "bvurem",
        Op::Lt if over_bits => "bvslt",
        Op::Le if over_bits => "bvsle",
        Op::BitAnd => "bvand",
        Op::BitOr => "bvor",
        Op::BitXor => "bvxor",
        Op::Shl => "bvshl",
        Op::Shr => "bvashr",
        Op::Add => "+",
        Op::Sub | Op::Neg => "-",
        Op::Mul => "*",
        Op::Div => "div",
        Op::Mod => "mod",
        Op::Ite => "ite",
        Op::Eq => "=",
        Op::Lt => "<",
        Op::Le => "<=",
        Op::Not => "not",
        Op::And => "and",
        Op::Or => "or",
        Op::Implies => "=>",
    }
}

/// The name of a sort in SMT-LIB.
fn sort_name(sort: Sort, width: Option<u32>) -> String {
    match (sort, width) {
        (Sort::Int, None) => "Int".to_owned(),
        (Sort::Int, Some(width)) => format!("(_ BitVec {width})"),
        (Sort::Bool, _) => "Bool".to_owned(),
    }
}

/// The bits of a value in two's complement of a width, as an unsigned number.
pub fn bits_of(value: i128, width: u32) -> u128 {
    let all = u128::from_ne_bytes(value.to_ne_bytes());
    all & 1u128.checked_shl(width).map_or(u128::MAX, |power| power - 1)
}

/// The canonical text: queries that differ in the names of symbols only have the same one.
pub fn canonical_text(query: &Query) -> String {
    let mut text = String::with_capacity(256 + 16 * query.nodes.len());
    text.push_str(if query.width.is_some() { "(set-logic QF_BV)\n" } else { "(set-logic ALL)\n" });
    for variable in &query.variables {
        push(&mut text, format_args!("(declare-const {} {})\n", variable.name, sort_name(variable.sort, query.width)));
    }
    for function in &query.functions {
        let args = vec!["Int"; function.arity].join(" ");
        push(&mut text, format_args!("(declare-fun {} ({args}) Int)\n", function.name));
    }
    Printer::new(query).print(&mut text);
    text.push_str("(check-sat)\n");
    text
}

/// The text of a query with comments that give the title, the names of variables and functions, and with the expected
/// answer (`unsat` or `sat`).
pub fn standalone(query: &Query, title: &str, expected: &str) -> String {
    let mut text = String::new();
    for line in title.lines() {
        push(&mut text, format_args!("; {}\n", one_line(line)));
    }
    for variable in &query.variables {
        if let Some(symbol) = &variable.symbol {
            push(&mut text, format_args!("; {} = {}\n", variable.name, one_line(symbol.name())));
        }
    }
    for function in &query.functions {
        push(&mut text, format_args!("; {} = {}\n", function.name, one_line(&function.meaning)));
    }
    push(&mut text, format_args!("(set-info :status {expected})\n"));
    text.push_str(&canonical_text(query));
    text
}

/// The text without line breaks, so that it stays inside a comment.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Appends formatted text.
fn push(text: &mut String, args: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(args);
}

/// Prints the nodes of a query. A node that is used more than once becomes a definition, so that the text is no larger than
/// the graph.
struct Printer<'q> {
    /// The query.
    query: &'q Query,
    /// How often each node is an operand.
    uses: Vec<usize>,
}

impl<'q> Printer<'q> {
    /// Counts the uses of all nodes.
    fn new(query: &'q Query) -> Self {
        let mut uses = vec![0; query.nodes.len()];
        for node in &query.nodes {
            if let Node::Op(_, operands) | Node::Apply(_, operands) = node {
                for operand in operands {
                    uses[*operand] += 1;
                }
            }
        }
        Self { query, uses }
    }

    /// Whether a node gets a definition: it is used more than once and is not a constant or variable.
    fn is_named(&self, id: NodeId) -> bool {
        self.uses[id] > 1 && matches!(self.query.nodes[id], Node::Op(..) | Node::Apply(..))
    }

    /// Prints all definitions and assertions.
    fn print(&self, text: &mut String) {
        for id in (0..self.query.nodes.len()).filter(|id| self.is_named(*id)) {
            push(text, format_args!("(define-fun t{id} () {} ", sort_name(self.query.sorts[id], self.query.width)));
            self.body(text, id);
            text.push_str(")\n");
        }
        for assertion in &self.query.assertions {
            text.push_str("(assert ");
            self.node(text, *assertion);
            text.push_str(")\n");
        }
    }

    /// Prints a use of a node: its name, or its body.
    fn node(&self, text: &mut String, id: NodeId) {
        if self.is_named(id) {
            push(text, format_args!("t{id}"));
        } else {
            self.body(text, id);
        }
    }

    /// Prints the body of a node.
    fn body(&self, text: &mut String, id: NodeId) {
        match &self.query.nodes[id] {
            Node::Int(value) if self.query.width.is_some() => {
                let width = self.query.width.unwrap_or(1);
                push(text, format_args!("(_ bv{} {width})", bits_of(*value, width)));
            }
            Node::Int(value) if *value < 0 => push(text, format_args!("(- {})", value.unsigned_abs())),
            Node::Int(value) => push(text, format_args!("{value}")),
            Node::Bool(value) => push(text, format_args!("{value}")),
            Node::Var(position) => text.push_str(&self.query.variables[*position].name),
            Node::Apply(function, args) => self.call(text, &self.query.functions[*function].name, args),
            Node::Op(op, operands) => self.call(text, operator_name(*op, self.query.width.is_some()), operands),
        }
    }

    /// Prints an application.
    fn call(&self, text: &mut String, name: &str, args: &[NodeId]) {
        if args.is_empty() {
            text.push_str(name);
            return;
        }
        text.push('(');
        text.push_str(name);
        for arg in args {
            text.push(' ');
            self.node(text, *arg);
        }
        text.push(')');
    }
}
