//! A small evaluator of SMT-LIB, written from the standard and sharing no code with the judge.
//!
//! The oracle `encoder` reads the text of a query with it and asks whether the assertions can hold under given values.
//!
//! ```text
//! (declare-const v0 Int) (assert (< (mod v0 8) 3))        at v0 = -7: (mod -7 8) is 1, so the assertion holds
//! ```
//!
//! Read are the commands and the operators of `Int`, `Bool` and bit-vectors that queries consist of; anything else is an
//! error, never skipped. [`eval`] computes values, [`search`] finds values of the variables that are not given.

pub mod eval;
pub mod search;

use std::collections::HashMap;

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// An integer.
    Int(i128),
    /// A truth value.
    Bool(bool),
    /// The bits of a bit-vector, as an unsigned number.
    Bits(u128),
}

/// The sort of a constant or of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// The integers.
    Int,
    /// The truth values.
    Bool,
    /// Bit-vectors of a width, 1 to 64.
    Bits(u32),
}

/// An expression; operands are positions of earlier expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A constant.
    Value(Value),
    /// A declared constant.
    Variable(usize),
    /// An operator of the standard.
    Call(&'static str, Vec<usize>),
    /// A declared function.
    Function(String, Vec<usize>),
}

/// The operators of the standard that are read.
const OPERATORS: [&str; 27] = [
    "+", "-", "*", "div", "mod", "ite", "=", "<", "<=", "not", "and", "or", "=>", "bvadd", "bvsub", "bvneg", "bvmul",
    "bvudiv", "bvurem", "bvslt", "bvsle", "bvand", "bvor", "bvxor", "bvshl", "bvashr", "distinct",
];

/// The most nested parentheses that are read.
const DEEPEST: usize = 4000;

/// A query that was read.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// All expressions, operands first.
    pub nodes: Vec<Node>,
    /// The sort of each expression.
    pub sorts: Vec<Sort>,
    /// Names and sorts of the declared constants.
    pub variables: Vec<(String, Sort)>,
    /// The asserted expressions.
    pub assertions: Vec<usize>,
    /// The expression of each name in use.
    names: HashMap<String, usize>,
    /// Numbers of arguments of the declared functions.
    functions: HashMap<String, usize>,
}

/// A word or a list of a text.
enum Form {
    /// A word.
    Word(String),
    /// A list in parentheses.
    List(Vec<Form>),
}

impl Script {
    /// Reads a text.
    ///
    /// # Errors
    /// The text is not well-formed, or uses something that is not known here; as a sentence.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut script = Self::default();
        for command in forms(text)? {
            let Form::List(parts) = command else { return Err("a command is no list".into()) };
            script.command(&parts)?;
        }
        Ok(script)
    }

    /// Reads a command.
    fn command(&mut self, parts: &[Form]) -> Result<(), String> {
        let [Form::Word(name), rest @ ..] = parts else { return Err("a command without a name".into()) };
        match (name.as_str(), rest) {
            ("set-logic" | "set-info", _) | ("check-sat" | "get-model", []) => Ok(()),
            ("declare-const", [Form::Word(name), sort]) => {
                let sort = sort_of(sort)?;
                self.variables.push((name.clone(), sort));
                let node = self.push(Node::Variable(self.variables.len() - 1), sort);
                self.define(name, node)
            }
            ("declare-fun", [Form::Word(name), Form::List(arguments), sort]) if !arguments.is_empty() => {
                let is_integer = |form: &Form| matches!(sort_of(form), Ok(Sort::Int));
                if !arguments.iter().chain([sort]).all(is_integer) {
                    return Err(format!("the function {name} is not one of integers"));
                }
                let known = self.functions.insert(name.clone(), arguments.len());
                if known.is_some() { Err(format!("the function {name} is declared twice")) } else { Ok(()) }
            }
            ("define-fun", [Form::Word(name), Form::List(arguments), sort, body]) if arguments.is_empty() => {
                let node = self.expression(body)?;
                if self.sorts[node] != sort_of(sort)? {
                    return Err(format!("the definition of {name} has another sort than it says"));
                }
                self.define(name, node)
            }
            ("assert", [body]) => {
                let node = self.expression(body)?;
                self.assertions.push(node);
                if self.sorts[node] == Sort::Bool { Ok(()) } else { Err("an assertion is no truth value".into()) }
            }
            _ => Err(format!("the command {name} is not known")),
        }
    }

    /// Gives a name to an expression.
    fn define(&mut self, name: &str, node: usize) -> Result<(), String> {
        let known = self.names.insert(name.to_owned(), node);
        if known.is_some() { Err(format!("{name} is defined twice")) } else { Ok(()) }
    }

    /// Adds an expression.
    fn push(&mut self, node: Node, sort: Sort) -> usize {
        self.nodes.push(node);
        self.sorts.push(sort);
        self.nodes.len() - 1
    }

    /// Reads an expression.
    fn expression(&mut self, form: &Form) -> Result<usize, String> {
        let parts = match form {
            Form::Word(word) => return self.word(word),
            Form::List(parts) => parts,
        };
        let [Form::Word(head), rest @ ..] = parts.as_slice() else { return Err("an expression without a head".into()) };
        if head == "_" {
            return self.bit_constant(rest);
        }
        let operands: Vec<usize> = rest.iter().map(|part| self.expression(part)).collect::<Result<_, _>>()?;
        if let Some(arity) = self.functions.get(head) {
            let fits = *arity == operands.len() && operands.iter().all(|operand| self.sorts[*operand] == Sort::Int);
            let node = Node::Function(head.clone(), operands);
            return if fits { Ok(self.push(node, Sort::Int)) } else { Err(format!("{head} has other arguments")) };
        }
        let Some(operator) = OPERATORS.iter().find(|known| *known == head) else {
            return Err(format!("the operator {head} is not known"));
        };
        let sort = self.sort_of_call(operator, &operands)?;
        Ok(self.push(Node::Call(operator, operands), sort))
    }

    /// Reads a word: a name, a number or a truth value.
    fn word(&mut self, word: &str) -> Result<usize, String> {
        if let Some(node) = self.names.get(word) {
            return Ok(*node);
        }
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            // Two's complement: 2^127 occurs as the operand of a negation.
            let value = word.parse::<u128>().map_err(|error| error.to_string())?;
            let value = i128::try_from(value).map_err(|error| error.to_string())?;
            return Ok(self.push(Node::Value(Value::Int(value)), Sort::Int));
        }
        match word {
            "true" | "false" => Ok(self.push(Node::Value(Value::Bool(word == "true")), Sort::Bool)),
            _ => Err(format!("the name {word} is not known")),
        }
    }

    /// Reads what follows `_` in `(_ bv5 8)`.
    fn bit_constant(&mut self, parts: &[Form]) -> Result<usize, String> {
        let [Form::Word(value), Form::Word(width)] = parts else { return Err("no constant of bits".into()) };
        let value = value.strip_prefix("bv").and_then(|value| value.parse::<u128>().ok());
        match (value, width.parse::<u32>()) {
            (Some(value), Ok(width)) if (1..=64).contains(&width) && value >> width == 0 => {
                Ok(self.push(Node::Value(Value::Bits(value)), Sort::Bits(width)))
            }
            _ => Err("a constant of bits does not fit its width".into()),
        }
    }

    /// The sort of an operator applied to expressions; checks their number and sorts.
    fn sort_of_call(&self, operator: &str, operands: &[usize]) -> Result<Sort, String> {
        use Sort::{Bits, Bool, Int};
        let sorts: Vec<Sort> = operands.iter().map(|operand| self.sorts[*operand]).collect();
        let same = sorts.windows(2).all(|pair| pair[0] == pair[1]);
        let found = match (operator, sorts.as_slice()) {
            ("-", [Int]) => Some(Int),
            ("+" | "-" | "*" | "div" | "mod", [Int, _, ..]) if same => Some(Int),
            ("ite", [Bool, then, otherwise]) if then == otherwise => Some(*then),
            ("<" | "<=", [Int, Int]) => Some(Bool),
            ("=" | "distinct", [_, _]) if same => Some(Bool),
            ("not", [Bool]) => Some(Bool),
            ("and" | "or", [Bool, ..]) if same => Some(Bool),
            ("=>", [Bool, Bool]) => Some(Bool),
            ("bvneg", [Bits(width)]) => Some(Bits(*width)),
            ("bvslt" | "bvsle", [Bits(_), Bits(_)]) if same => Some(Bool),
            (
                "bvadd" | "bvsub" | "bvmul" | "bvudiv" | "bvurem" | "bvand" | "bvor" | "bvxor" | "bvshl" | "bvashr",
                [Bits(width), Bits(_), ..],
            ) if same && (sorts.len() == 2 || matches!(operator, "bvadd" | "bvmul" | "bvand" | "bvor" | "bvxor")) => {
                Some(Bits(*width))
            }
            _ => None,
        };
        found.ok_or_else(|| format!("{operator} is not defined for {sorts:?}"))
    }
}

/// The sort of that name.
fn sort_of(form: &Form) -> Result<Sort, String> {
    let width = match form {
        Form::Word(word) if word == "Int" => return Ok(Sort::Int),
        Form::Word(word) if word == "Bool" => return Ok(Sort::Bool),
        Form::List(parts) => match parts.as_slice() {
            [Form::Word(head), Form::Word(name), Form::Word(width)] if head == "_" && name == "BitVec" => {
                width.parse::<u32>().ok().filter(|width| (1..=64).contains(width))
            }
            _ => None,
        },
        Form::Word(_) => None,
    };
    width.map(Sort::Bits).ok_or_else(|| "a sort is not known".into())
}

/// Reads words and parentheses; a comment ends at the end of its line.
fn forms(text: &str) -> Result<Vec<Form>, String> {
    let mut open: Vec<Vec<Form>> = vec![Vec::new()];
    for line in text.lines() {
        let line = line.split(';').next().unwrap_or_default();
        let spaced = line.replace('(', " ( ").replace(')', " ) ");
        for word in spaced.split_ascii_whitespace() {
            match word {
                "(" if open.len() > DEEPEST => return Err("the text is nested too deeply".into()),
                "(" => open.push(Vec::new()),
                ")" => {
                    let (Some(list), Some(around)) = (open.pop(), open.last_mut()) else {
                        return Err("a parenthesis is not open".into());
                    };
                    around.push(Form::List(list));
                }
                word => {
                    let Some(list) = open.last_mut() else { return Err("a parenthesis is not open".into()) };
                    list.push(Form::Word(word.to_owned()));
                }
            }
        }
    }
    match (open.pop(), open.is_empty()) {
        (Some(forms), true) => Ok(forms),
        _ => Err("a parenthesis is not closed".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_an_error() {
        let bad = [
            "(assert (< x 1))",
            "(assert 1)",
            "(declare-const x Int)(declare-const x Int)",
            "(declare-const x Int)(assert (bvslt x 1))",
            "(declare-const x Real)",
            "(push 1)",
            "(assert (exists ((x Int)) true))",
            "(assert true",
            "(assert true))",
            "(assert (= (_ bv9 3) (_ bv1 3)))",
            "(define-fun t () Bool 1)",
        ];
        for text in bad {
            assert!(Script::read(text).is_err(), "{text}");
        }
        let good =
            "(set-logic ALL) ; a comment (\n(declare-const x Int)(define-fun t () Int (+ x 1))(assert (< t (- 2)))";
        assert_eq!(Script::read(good).unwrap().assertions.len(), 1);
    }
}
