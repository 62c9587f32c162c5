//! Values as terms: equal terms are one number, so that two values are compared by comparing numbers.
//!
//! ```text
//! A[3] + B[3], B[3] + A[3]              one term: + and * commute, bit by bit
//! x * 4, x << 2 (int32)                 one term: integers are polynomials modulo 2^32
//! if c: y = 1  else: y = 2              choose(c, 1, 2)
//! ```
//!
//! The rules keep every bit of a value, where NaN is one value. In particular sums of floats are not regrouped, and
//! `x + 0.0` is not `x`, which may be -0.0. Choices are ordered by their conditions, so that nested choices between the same
//! values are one term, whichever condition was asked first.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

use tilewright_ir::scalar::{cast, wrap_int};
use tilewright_ir::{BinaryOp, MathFn, Scalar, ScalarType, UnaryOp, sabotage};

use crate::forms::reciprocal_of_power;
use crate::poly::Poly;

/// The number of a term.
pub(super) type Id = u32;

/// Terms that there may be.
const MOST_TERMS: usize = 1 << 22;

/// Choices that may be made, and how deep they may nest.
const MOST_CHOICES: u64 = 1 << 22;
const MOST_DEPTH: usize = 256;

/// Products in a polynomial, and factors in a product; a larger polynomial is an operation like any other.
const MOST_PRODUCTS: usize = 64;
const MOST_FACTORS: usize = 16;

/// Products in all polynomials, each of which takes some 80 bytes.
const MOST_PRODUCTS_IN_ALL: usize = 1 << 24;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    Int(ScalarType, i128),
    /// The bits of a double that has this value.
    Float(ScalarType, u64),
    /// An element of a parameter as the caller gave it, or an integer that the caller gave.
    Input(u32, u64),
    /// What was never written.
    Undefined,
    Sum(ScalarType, Poly<Id>),
    Binary(BinaryOp, ScalarType, Id, Id),
    Unary(UnaryOp, ScalarType, Id),
    Call(MathFn, ScalarType, Vec<Id>),
    Cast(ScalarType, ScalarType, Id),
    Choose(Id, Id, Id),
}

/// All terms.
#[derive(Debug, Default)]
pub(super) struct Terms {
    nodes: Vec<Node>,
    /// A hash table of the terms with open addressing, at most half full: the hash and the number of a term, or [`FREE`].
    table: Vec<(u32, Id)>,
    /// Whether a term may be what was never written.
    undefined: Vec<bool>,
    /// Whether a term may be what a parameter held at the call that need not hold anything.
    found: Vec<bool>,
    /// The numbers of those parameters.
    pub(super) unsure: HashSet<u32>,
    /// Products in all polynomials so far.
    n_products: usize,
    /// Choices that were made so far.
    n_choices: u64,
    /// How many choices are being made, one inside the other.
    depth: usize,
}

/// A place of the table that holds no term.
const FREE: (u32, Id) = (0, Id::MAX);

fn hash(node: &Node) -> u32 {
    let hash = BuildHasherDefault::<Mixer>::default().hash_one(node);
    u32::try_from(hash >> 32).unwrap_or(0)
}

/// Mixes the parts of a term into a hash. Terms are found faster if their hashes differ; nothing else depends on it.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(26) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(u64::try_from(value).unwrap_or(0));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A term, or the reason why there is none.
pub(super) type Made = Result<Id, String>;

impl Terms {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    /// Whether a term may be what was never written. Such a term takes part in no operation: a load of it ends the run.
    pub(super) fn is_undefined(&self, id: Id) -> bool {
        self.undefined[id as usize]
    }

    /// Whether a term may be what a parameter held at the call that need not hold anything.
    pub(super) fn is_found(&self, id: Id) -> bool {
        self.found[id as usize]
    }

    pub(super) fn add(&mut self, node: Node) -> Made {
        if self.nodes.len() * 2 >= self.table.len() {
            self.grow();
        }
        let hash = hash(&node);
        let place = match self.find(&node, hash) {
            Ok(known) => return Ok(known),
            Err(place) => place,
        };
        let id = Id::try_from(self.nodes.len()).ok().filter(|_| self.nodes.len() < MOST_TERMS);
        let id = id.ok_or_else(|| format!("the values of the programs need more than {MOST_TERMS} terms"))?;
        self.n_products += if let Node::Sum(_, poly) = &node { poly.n_terms() } else { 0 };
        if self.n_products > MOST_PRODUCTS_IN_ALL {
            return Err(format!("sums of integers need more than {MOST_PRODUCTS_IN_ALL} products"));
        }
        self.undefined.push(match &node {
            Node::Undefined => true,
            Node::Choose(_, a, b) => self.is_undefined(*a) || self.is_undefined(*b),
            Node::Int(..) | Node::Float(..) | Node::Input(..) | Node::Sum(..) => false,
            Node::Binary(..) | Node::Unary(..) | Node::Call(..) | Node::Cast(..) => false,
        });
        self.found.push(match &node {
            Node::Input(param, _) => self.unsure.contains(param),
            Node::Choose(_, a, b) => self.is_found(*a) || self.is_found(*b),
            _ => false,
        });
        self.nodes.push(node);
        self.table[place] = (hash, id);
        Ok(id)
    }

    /// The number of a term; if it has none, the place of the table for it. The table is not full.
    fn find(&self, node: &Node, hash: u32) -> Result<Id, usize> {
        let mask = self.table.len() - 1;
        let mut place = hash as usize & mask;
        while self.table[place] != FREE {
            let (other, id) = self.table[place];
            if other == hash && *self.node(id) == *node {
                return Ok(id);
            }
            place = (place + 1) & mask;
        }
        Err(place)
    }

    /// Makes the table twice as large.
    fn grow(&mut self) {
        let size = (self.table.len() * 2).max(1 << 10);
        let terms = std::mem::replace(&mut self.table, vec![FREE; size]);
        for entry in terms.into_iter().filter(|entry| *entry != FREE) {
            let mut place = entry.0 as usize & (size - 1);
            while self.table[place] != FREE {
                place = (place + 1) & (size - 1);
            }
            self.table[place] = entry;
        }
    }

    /// The number of a term that there may be.
    fn known(&self, node: &Node) -> Option<Id> {
        if self.table.is_empty() { None } else { self.find(node, hash(node)).ok() }
    }

    pub(super) fn int(&mut self, ty: ScalarType, value: i128) -> Made {
        self.add(Node::Int(ty, value))
    }

    pub(super) fn constant(&mut self, ty: ScalarType, value: Scalar) -> Made {
        self.add(match value {
            Scalar::Int(value) => Node::Int(ty, value),
            Scalar::Float(value) if value.is_nan() => Node::Float(ty, f64::NAN.to_bits()),
            Scalar::Float(value) => Node::Float(ty, value.to_bits()),
        })
    }

    /// The value of a constant.
    pub(super) fn value(&self, id: Id) -> Option<Scalar> {
        match self.node(id) {
            Node::Int(_, value) => Some(Scalar::Int(*value)),
            Node::Float(_, bits) => Some(Scalar::Float(f64::from_bits(*bits))),
            _ => None,
        }
    }

    /// The value of an integer constant.
    pub(super) fn as_int(&self, id: Id) -> Option<i128> {
        self.value(id).and_then(Scalar::as_int)
    }

    /// An operation on two operands of type `ty`.
    pub(super) fn binary(&mut self, op: BinaryOp, ty: ScalarType, a: Id, b: Id) -> Made {
        use BinaryOp as Op;
        if let (Some(x), Some(y)) = (self.value(a), self.value(b)) {
            let value = op.eval(ty, x, y).map_err(|error| error.to_string())?;
            let is_truth = matches!(op, Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::And | Op::Or);
            return self.constant(if is_truth { ScalarType::Bool } else { ty }, value);
        }
        let (least, most) = (a.min(b), a.max(b));
        match op {
            Op::Lt | Op::Le if sabotage::on("terms-compare-either-way") => self.add(Node::Binary(op, ty, least, most)),
            Op::Add | Op::Sub | Op::Mul if ty.is_integer() => self.ring(op, ty, a, b),
            Op::Shl | Op::Shr => self.shift(op, ty, a, b),
            Op::FloorDiv | Op::FloorMod | Op::TruncDiv | Op::TruncMod if self.as_int(b).is_none_or(|by| by == 0) => {
                Err("a division by what memory holds may trap".into())
            }
            Op::Mul if self.is_one(b) => Ok(a),
            Op::Mul if self.is_one(a) => Ok(b),
            Op::Add | Op::Mul | Op::BitAnd | Op::BitOr | Op::BitXor | Op::Eq => {
                self.add(Node::Binary(op, ty, least, most))
            }
            Op::Sub if sabotage::on("execution-swaps-differences") => self.add(Node::Binary(op, ty, least, most)),
            // x - y of floats is x + (-y).
            Op::Sub => {
                let negated = self.unary(UnaryOp::Neg, ty, b)?;
                self.binary(Op::Add, ty, a, negated)
            }
            Op::Div if let Some(by) = self.reciprocal(b) => {
                let by = self.constant(ty, Scalar::Float(by))?;
                self.binary(Op::Mul, ty, a, by)
            }
            Op::Min | Op::Max if !ty.is_float() => {
                if a == b {
                    Ok(a)
                } else {
                    self.add(Node::Binary(op, ty, least, most))
                }
            }
            Op::And | Op::Or => self.connect(op, least, most),
            Op::Ne => {
                let same = self.binary(Op::Eq, ty, a, b)?;
                self.unary(UnaryOp::Not, ScalarType::Bool, same)
            }
            Op::Gt => self.add(Node::Binary(Op::Lt, ty, b, a)),
            Op::Ge => self.add(Node::Binary(Op::Le, ty, b, a)),
            Op::Div
            | Op::FloorDiv
            | Op::FloorMod
            | Op::TruncDiv
            | Op::TruncMod
            | Op::Min
            | Op::Max
            | Op::Lt
            | Op::Le => self.add(Node::Binary(op, ty, a, b)),
        }
    }

    /// Whether a term is the float 1.
    fn is_one(&self, id: Id) -> bool {
        matches!(self.node(id), Node::Float(_, bits) if *bits == 1f64.to_bits())
    }

    /// One divided by a term that is a power of two, by which floats are multiplied instead of divided: the same number, rounded once.
    fn reciprocal(&self, id: Id) -> Option<f64> {
        match self.node(id) {
            Node::Float(_, bits) => reciprocal_of_power(f64::from_bits(*bits)),
            _ => None,
        }
    }

    /// A truth value of two: one of them if the other one decides nothing.
    fn connect(&mut self, op: BinaryOp, a: Id, b: Id) -> Made {
        let neutral = i128::from(op == BinaryOp::And);
        for (one, other) in [(a, b), (b, a)] {
            match self.as_int(one) {
                Some(value) if value == neutral => return Ok(other),
                Some(_) => return Ok(one),
                None => {}
            }
        }
        if a == b { Ok(a) } else { self.add(Node::Binary(op, ScalarType::Bool, a, b)) }
    }

    /// Sums and products of integers, modulo the size of the type.
    fn ring(&mut self, op: BinaryOp, ty: ScalarType, a: Id, b: Id) -> Made {
        let (x, y) = (self.polynomial(a), self.polynomial(b));
        let found = match op {
            BinaryOp::Add => x.plus(&y),
            BinaryOp::Sub => x.minus(&y),
            _ => x.times(&y),
        };
        let is_small = |poly: &Poly<Id>| {
            poly.n_terms() <= MOST_PRODUCTS && poly.terms().all(|(factors, _)| factors.len() <= MOST_FACTORS)
        };
        match found.map(|poly| poly.map_coefficients(|by| wrap_int(ty, by))).filter(is_small) {
            Some(poly) => self.sum(ty, poly),
            None if op == BinaryOp::Sub => self.add(Node::Binary(op, ty, a, b)),
            None => self.add(Node::Binary(op, ty, a.min(b), a.max(b))),
        }
    }

    fn polynomial(&self, id: Id) -> Poly<Id> {
        match self.node(id) {
            Node::Int(_, value) => Poly::constant(*value),
            Node::Sum(_, poly) => poly.clone(),
            _ => Poly::atom(id),
        }
    }

    fn sum(&mut self, ty: ScalarType, poly: Poly<Id>) -> Made {
        if let Some(value) = poly.as_const() {
            return self.int(ty, wrap_int(ty, value));
        }
        let only = poly.terms().next().filter(|_| poly.constant_term() == 0 && poly.n_terms() == 1);
        match only {
            Some(([atom], 1)) => Ok(*atom),
            _ => self.add(Node::Sum(ty, poly)),
        }
    }

    fn shift(&mut self, op: BinaryOp, ty: ScalarType, a: Id, b: Id) -> Made {
        let by = self.as_int(b).filter(|by| (0..i128::from(ty.bits())).contains(by));
        let by = by.ok_or("a shift by what memory holds may trap")?;
        if op == BinaryOp::Shl && by < 63 {
            let factor = self.int(ty, wrap_int(ty, 1 << by))?;
            return self.ring(BinaryOp::Mul, ty, a, factor);
        }
        self.add(Node::Binary(op, ty, a, b))
    }

    pub(super) fn unary(&mut self, op: UnaryOp, ty: ScalarType, a: Id) -> Made {
        if let Some(x) = self.value(a) {
            let value = op.eval(ty, x).map_err(|error| error.to_string())?;
            return self.constant(ty, value);
        }
        match (op, self.node(a)) {
            (UnaryOp::Neg, _) if ty.is_integer() => {
                let zero = self.int(ty, 0)?;
                self.ring(BinaryOp::Sub, ty, zero, a)
            }
            (UnaryOp::Neg | UnaryOp::Not | UnaryOp::BitNot, Node::Unary(inner, _, x)) if *inner == op => Ok(*x),
            (UnaryOp::Not, &Node::Binary(BinaryOp::Lt, of, x, y)) if !of.is_float() => {
                self.add(Node::Binary(BinaryOp::Le, of, y, x))
            }
            (UnaryOp::Not, &Node::Binary(BinaryOp::Le, of, x, y)) if !of.is_float() => {
                self.add(Node::Binary(BinaryOp::Lt, of, y, x))
            }
            _ => self.add(Node::Unary(op, ty, a)),
        }
    }

    pub(super) fn call(&mut self, function: MathFn, ty: ScalarType, args: Vec<Id>) -> Made {
        self.add(Node::Call(function, ty, args))
    }

    pub(super) fn cast(&mut self, from: ScalarType, to: ScalarType, a: Id) -> Made {
        if from == to {
            return Ok(a);
        }
        match self.value(a) {
            Some(value) => self.constant(to, cast(from, to, value)),
            None if sabotage::on("terms-ignore-casts") => Ok(a),
            None => self.add(Node::Cast(from, to, a)),
        }
    }

    /// `a` where a condition holds, `b` elsewhere.
    pub(super) fn choose(&mut self, cond: Id, a: Id, b: Id) -> Made {
        if a == b {
            return Ok(a);
        }
        if let Some(value) = self.as_int(cond) {
            return Ok(if value != 0 { a } else { b });
        }
        self.n_choices += 1;
        if self.depth >= MOST_DEPTH || self.n_choices > MOST_CHOICES {
            return Err("too much depends on what memory holds".into());
        }
        self.depth += 1;
        let made = match *self.node(cond) {
            Node::Unary(UnaryOp::Not, _, inner) => self.choose(inner, b, a),
            // `x <= y` is the opposite of `y < x`, by which choices are made.
            Node::Binary(BinaryOp::Le, of, x, y) if !of.is_float() => {
                let opposite = self.add(Node::Binary(BinaryOp::Lt, of, y, x))?;
                self.choose(opposite, b, a)
            }
            Node::Binary(BinaryOp::And, _, one, two) => {
                let then = self.choose(two, a, b)?;
                self.choose(one, then, b)
            }
            Node::Binary(BinaryOp::Or, _, one, two) => {
                let otherwise = self.choose(two, a, b)?;
                self.choose(one, a, otherwise)
            }
            _ => self.ordered(cond, a, b),
        };
        self.depth -= 1;
        made
    }

    /// The same for a condition that is not made of others: the condition with the least number stands outermost.
    fn ordered(&mut self, cond: Id, a: Id, b: Id) -> Made {
        let first = [a, b].into_iter().filter_map(|id| self.condition(id)).fold(cond, Id::min);
        if first == cond {
            let (a, b) = (self.where_it(a, cond, true), self.where_it(b, cond, false));
            return if a == b { Ok(a) } else { self.add(Node::Choose(cond, a, b)) };
        }
        let mut arms = [0; 2];
        for (arm, holds) in arms.iter_mut().zip([true, false]) {
            let (a, b) = (self.where_it(a, first, holds), self.where_it(b, first, holds));
            *arm = self.choose(cond, a, b)?;
        }
        if arms[0] == arms[1] { Ok(arms[0]) } else { self.add(Node::Choose(first, arms[0], arms[1])) }
    }

    /// The outermost condition of a choice.
    fn condition(&self, id: Id) -> Option<Id> {
        if let Node::Choose(cond, ..) = self.node(id) { Some(*cond) } else { None }
    }

    /// A value where a condition holds.
    pub(super) fn under(&self, id: Id, cond: Id) -> Id {
        match *self.node(cond) {
            Node::Unary(UnaryOp::Not, _, inner) => self.where_it(id, inner, false),
            Node::Binary(BinaryOp::Le, of, x, y) if !of.is_float() => {
                let opposite = self.known(&Node::Binary(BinaryOp::Lt, of, y, x));
                opposite.map_or(id, |cond| self.where_it(id, cond, false))
            }
            _ => self.where_it(id, cond, true),
        }
    }

    /// A value where a condition comes out like this.
    fn where_it(&self, id: Id, cond: Id, holds: bool) -> Id {
        match self.node(id) {
            Node::Choose(known, a, b) if *known == cond => {
                if holds {
                    *a
                } else {
                    *b
                }
            }
            _ => id,
        }
    }
}
