//! Pseudo-random inputs, reproducible by seed, and sample values of the integers of a call, for which its assertions hold.

use tilewright_interp::Tensor;
use tilewright_ir::{
    BinaryOp, Bindings, DataType, Diagnostic, Expr, PrimFunc, Scalar, ScalarType, Stmt, StmtKind, TypeClass, Var,
};

/// Values of symbolic extents that the caller did not give: small and pairwise distinct, and most of them no multiples
/// of a block size.
const DEFAULT_EXTENTS: [i128; 12] = [2, 7, 9, 17, 5, 11, 13, 19, 23, 3, 29, 31];

/// Choices of extents that are tried to satisfy the assertions of a program.
const MAX_TRIES: u64 = 1 << 14;

/// The largest finite `float16`.
const MAX_FLOAT16: f64 = 65504.0;

/// The difference of the states of two neighbours in a stream.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A reproducible stream of pseudo-random numbers: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
/// number generators", OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// The stream of a seed. Each `part`, such as a parameter, has an independent stream.
    pub fn new(seed: u64, part: u64) -> Self {
        let mut numbers = Self(seed ^ part.wrapping_mul(STEP));
        let start = numbers.next();
        Self(start ^ part)
    }

    /// The stream after its first `count` numbers.
    #[must_use]
    pub fn after(&self, count: usize) -> Self {
        Self(self.0.wrapping_add((count as u64).wrapping_mul(STEP)))
    }

    /// The next number, uniform over all 64-bit values.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws a value of a type: floats from -2 up to 2, signed integers from -100 to 100, unsigned integers from 0 to
    /// 100.
    pub fn value(&mut self, ty: ScalarType) -> Scalar {
        let bits = self.next();
        match ty.class() {
            TypeClass::Bool => Scalar::Int((bits & 1).into()),
            TypeClass::UInt | TypeClass::Handle => Scalar::Int((bits % 101).into()),
            TypeClass::Int => Scalar::Int(i128::from(bits % 201) - 100),
            #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
            TypeClass::Float => {
                let unit = (bits >> 11) as f64 / (1u64 << 53) as f64;
                Scalar::Float(tilewright_ir::scalar::round_float(ty, unit * 4.0 - 2.0))
            }
        }
    }

    /// Draws the scalar argument at a position. Half of the seeds give integers that conditions are often about: 0, 1, -1, 2.
    pub fn argument(&mut self, ty: ScalarType, seed: u64, position: u64) -> Scalar {
        let near_zero = [0, 1, -1, 2];
        let at = usize::try_from(seed.wrapping_add(position) % 4).unwrap_or(0);
        match ty.class() {
            TypeClass::Int if seed % 8 >= 4 => Scalar::Int(near_zero[at]),
            _ => self.value(ty),
        }
    }

    /// Draws an integer as [`Numbers::value`] does, except that one in four is the least or the greatest of its type, half of that, or
    /// beyond the range of a narrower type.
    pub fn value_or_extreme(&mut self, ty: ScalarType) -> Scalar {
        let bits = self.next();
        let Some((low, high)) = ty.integer_range().filter(|_| bits.is_multiple_of(4)) else { return self.value(ty) };
        let odd = [low, high, high / 2 + 1, 0, 200, 300, 40_000, -1];
        let at = usize::try_from(bits >> 32).unwrap_or(0) % odd.len();
        Scalar::Int(odd[at].clamp(low, high))
    }

    /// Draws a value as [`Numbers::value`] does, except that one float in eight is NaN, an infinity, -0.0, or of the
    /// largest `float16` magnitude.
    pub fn value_or_special(&mut self, ty: ScalarType) -> Scalar {
        let bits = self.next();
        if !ty.is_float() || !bits.is_multiple_of(8) {
            return self.value(ty);
        }
        let large = tilewright_ir::scalar::round_float(ty, MAX_FLOAT16);
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, large, -large];
        let at = usize::try_from(bits >> 32).unwrap_or(0) % odd.len();
        Scalar::Float(odd[at])
    }

    /// Draws a whole number from -2 to 2 as a float.
    pub fn whole(&mut self) -> Scalar {
        Scalar::Float(f64::from(u8::try_from(self.next() % 5).unwrap_or(0)) - 2.0)
    }

    /// Draws a tensor of values.
    ///
    /// # Errors
    /// The shape has too many elements.
    pub fn tensor(&mut self, dtype: DataType, shape: &[u64]) -> Result<Tensor, String> {
        let tensor = Tensor::from_lanes(dtype, shape, |lane| self.after(lane).value(dtype.scalar));
        let tensor = tensor.map_err(|error| error.to_string())?;
        *self = self.after(tensor.lane_count());
        Ok(tensor)
    }
}

/// Returns values for symbolic extents: the given ones by name, and for the others small numbers that differ from each
/// other and from the given ones.
///
/// # Errors
/// `unknown-symbol`: a given name is no symbol. `symbol-value`: a given value is below 1.
pub fn sample_symbols(symbols: &[Var], given: &[(String, i128)]) -> Result<Bindings, Diagnostic> {
    for (name, value) in given {
        if !symbols.iter().any(|var| var.name() == name) {
            let known: Vec<_> = symbols.iter().map(Var::name).collect();
            let help = if known.is_empty() {
                "no extent is symbolic".into()
            } else {
                format!("there is {}", known.join(", "))
            };
            let message = format!("`{name}` is no symbolic extent");
            return Err(Diagnostic::error("unknown-symbol", None, message).with_help(help));
        }
        if *value < 1 {
            let message = format!("`{name}` is {value}, but an extent is at least 1");
            return Err(Diagnostic::error("symbol-value", None, message));
        }
    }
    // Symbols of one name in different stages are the same extent, so values belong to names.
    let mut by_name: Vec<(String, i128)> = given.to_vec();
    let mut bindings = Bindings::new();
    for var in symbols {
        let known = by_name.iter().find(|(name, _)| name == var.name()).map(|(_, value)| *value);
        let value = known.unwrap_or_else(|| {
            let taken = |value: &i128| by_name.iter().any(|(_, other)| other == value);
            let fresh = DEFAULT_EXTENTS.into_iter().find(|value| !taken(value));
            fresh.unwrap_or_else(|| 37 + i128::try_from(by_name.len()).unwrap_or(0))
        });
        if known.is_none() {
            by_name.push((var.name().to_owned(), value));
        }
        bindings.insert(var.clone(), value);
    }
    Ok(bindings)
}

/// Extents to run with, and whether the assertions of the program hold for them.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// A value for each symbol.
    pub bindings: Bindings,
    /// An assertion that does not hold; `None` if all hold. All extents that were tried violate some assertion then.
    pub unmet: Option<Expr>,
}

/// Returns the assertions about the integers of a call that a function makes unconditionally, a conjunction part by part. What
/// reads memory is left out.
pub fn premises(func: &PrimFunc) -> Vec<Expr> {
    let known: Vec<Var> = func.extents().into_iter().chain(func.scalars()).collect();
    let mut asserted = Vec::new();
    collect(&func.body, &mut asserted);
    let mut found: Vec<Expr> = asserted.into_iter().flat_map(parts).collect();
    found.retain(|cond| !cond.reads_memory() && cond.vars().iter().all(|var| known.contains(var)));
    found
}

/// The parts of a conjunction, in order.
fn parts(cond: Expr) -> Vec<Expr> {
    match cond {
        Expr::Binary(BinaryOp::And, a, b) => [parts((*a).clone()), parts((*b).clone())].concat(),
        _ => vec![cond],
    }
}

/// Collects the assertions that are reached for all extents: those outside of loops, conditions and bindings.
fn collect(stmt: &Stmt, found: &mut Vec<Expr>) {
    match &stmt.kind {
        StmtKind::Assert { cond, .. } => found.push(cond.clone()),
        StmtKind::Seq(stmts) => stmts.iter().for_each(|stmt| collect(stmt, found)),
        StmtKind::Allocate { body, .. } | StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } => {
            collect(body, found);
        }
        StmtKind::For(_)
        | StmtKind::If { .. }
        | StmtKind::Let { .. }
        | StmtKind::Store { .. }
        | StmtKind::Barrier
        | StmtKind::Evaluate(_) => {}
    }
}

/// Returns values for symbolic extents as [`sample_symbols`] does, but such that `premises` hold, if such values are
/// found. Small values are tried first. Stream 0 begins with the values of [`sample_symbols`]; each stream draws other values.
///
/// # Errors
/// Those of [`sample_symbols`].
pub fn satisfying(
    symbols: &[Var],
    given: &[(String, i128)],
    premises: &[Expr],
    stream: u64,
) -> Result<Sampled, Diagnostic> {
    let bindings = sample_symbols(symbols, given)?;
    let first = unmet(premises, &bindings);
    if first.is_none() && stream == 0 {
        return Ok(Sampled { bindings, unmet: None });
    }
    let mut draw = Draw::new(premises, stream);
    for attempt in 0..MAX_TRIES {
        let mut tried: Vec<(String, i128)> = given.to_vec();
        for var in symbols {
            if tried.iter().all(|(name, _)| name != var.name()) {
                let value = if draw.is_constrained(var) {
                    draw.integer(attempt).saturating_abs().max(1)
                } else {
                    bindings[var]
                };
                tried.push((var.name().to_owned(), value));
            }
        }
        let tried = sample_symbols(symbols, &tried)?;
        if unmet(premises, &tried).is_none() {
            return Ok(Sampled { bindings: tried, unmet: None });
        }
    }
    Ok(Sampled { bindings, unmet: first })
}

/// Changes the values of scalar parameters in `bindings` such that `premises` hold, if they do not and such values are found.
/// Returns a premise that does not hold if none are.
pub fn satisfy_with_scalars(bindings: &mut Bindings, scalars: &[Var], premises: &[Expr], seed: u64) -> Option<Expr> {
    let first = unmet(premises, bindings)?;
    let mut draw = Draw::new(premises, seed);
    let constrained: Vec<&Var> = scalars.iter().filter(|var| draw.is_constrained(var)).collect();
    let mut tried = bindings.clone();
    for attempt in 0..MAX_TRIES {
        for &var in &constrained {
            let (low, high) = var.dtype().scalar.integer_range().unwrap_or((0, 1));
            tried.insert(var.clone(), draw.integer(attempt).clamp(low, high));
        }
        if unmet(premises, &tried).is_none() {
            *bindings = tried;
            return None;
        }
    }
    Some(first)
}

/// Binds variables without a value to the values that equations among the premises give them: `x == 2 * n` where `n` has a value. Of two
/// variables that are equal and otherwise free, both are 0.
pub fn bind_by_equations(bindings: &mut Bindings, vars: &[Var], premises: &[Expr]) {
    let is_open = |side: &Expr, bindings: &Bindings| match side {
        Expr::Var(var) if vars.contains(var) && !bindings.contains_key(var) => Some(var.clone()),
        _ => None,
    };
    let sides = |premise: &Expr| match premise {
        Expr::Binary(BinaryOp::Eq, lhs, rhs) => Some(((**lhs).clone(), (**rhs).clone())),
        _ => None,
    };
    let equations: Vec<(Expr, Expr)> = premises.iter().filter_map(sides).collect();
    loop {
        let mut found = Vec::new();
        for (a, b) in equations.iter().flat_map(|(a, b)| [(a, b), (b, a)]) {
            let Some(var) = is_open(a, bindings) else { continue };
            let range = var.dtype().scalar.integer_range();
            if let (Ok(value), Some((low, high))) = (b.eval_index(bindings), range)
                && (low..=high).contains(&value)
            {
                found.push((var, value));
            }
        }
        if found.is_empty() {
            let both = |(a, b): &(Expr, Expr)| is_open(a, bindings).and_then(|_| is_open(b, bindings));
            found.extend(equations.iter().find_map(both).map(|var| (var, 0)));
        }
        if found.is_empty() {
            return;
        }
        for (var, value) in found {
            bindings.entry(var).or_insert(value);
        }
    }
}

/// Binds variables to the given values by name, else to those that equations among the premises say, else to 0.
pub fn bind_scalars(bindings: &mut Bindings, vars: &[Var], given: &[(String, i128)], premises: &[Expr]) {
    for var in vars {
        if let Some((_, value)) = given.iter().find(|(name, _)| name == var.name()) {
            bindings.insert(var.clone(), *value);
        }
    }
    bind_by_equations(bindings, vars, premises);
    for var in vars {
        bindings.entry(var.clone()).or_insert(0);
    }
}

/// The first premise that does not hold. One whose value is not known counts as one that holds.
fn unmet(premises: &[Expr], bindings: &Bindings) -> Option<Expr> {
    premises.iter().find(|cond| cond.eval_index(bindings) == Ok(0)).cloned()
}

/// Integers for which conditions may hold.
struct Draw {
    numbers: Numbers,
    /// The variables of the conditions; others need no other value.
    vars: Vec<Var>,
    /// The numbers in the conditions: what is compared with a number often holds beside it.
    constants: Vec<i128>,
}

impl Draw {
    fn new(premises: &[Expr], stream: u64) -> Self {
        let mut constants = Vec::new();
        for premise in premises {
            premise.walk(&mut |part| constants.extend(part.as_const_int()));
        }
        let vars = premises.iter().flat_map(Expr::vars).collect();
        Self { numbers: Numbers::new(stream, 0), vars, constants }
    }

    fn is_constrained(&self, var: &Var) -> bool {
        self.vars.contains(var)
    }

    /// Half of the numbers are near a constant of the conditions; of the others, the first are small and of any sign.
    fn integer(&mut self, attempt: u64) -> i128 {
        let bits = self.numbers.next();
        let most = 8i128 << (attempt * 16 / MAX_TRIES);
        let offset = i128::from(bits >> 16);
        match usize::try_from(bits >> 40).ok().and_then(|at| self.constants.get(at % self.constants.len().max(1))) {
            Some(near) if bits.is_multiple_of(2) => near.saturating_add(offset % 17 - 8),
            _ => offset % (2 * most + 1) - most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_get_distinct_values_unless_given() {
        let symbols = ["n", "h", "n", "c"].map(Var::index);
        let bindings = sample_symbols(&symbols, &[("h".into(), 2)]).unwrap();
        let values: Vec<_> = symbols.iter().map(|var| bindings[var]).collect();
        assert_eq!(values, [7, 2, 7, 9]);
        assert!(sample_symbols(&symbols, &[("w".into(), 2)]).is_err());
        assert!(sample_symbols(&symbols, &[("h".into(), 0)]).is_err());
    }

    #[test]
    fn extents_satisfy_the_premises_or_an_unmet_premise_is_returned() {
        let symbols = ["n", "m"].map(Var::index);
        let [n, m] = symbols.each_ref().map(Expr::from);
        let whole = Expr::binary(BinaryOp::Eq, n.clone().floor_mod(Expr::int(12)), Expr::int(0));
        let below = m.clone().lt(n.clone());
        let found = satisfying(&symbols, &[], &[whole.clone(), below.clone()], 0).unwrap();
        let value = |found: &Sampled, place: usize| found.bindings[&symbols[place]];
        assert!(found.unmet.is_none() && value(&found, 0) % 12 == 0 && value(&found, 1) < value(&found, 0));
        let given = satisfying(&symbols, &[("m".into(), 30)], &[whole, below], 0).unwrap();
        assert!(given.unmet.is_none() && value(&given, 1) == 30 && value(&given, 0) > 30);
        let never = n.lt(Expr::int(0));
        assert_eq!(satisfying(&symbols, &[], std::slice::from_ref(&never), 0).unwrap().unmet, Some(never));
    }

    #[test]
    fn scalars_satisfy_the_premises_or_an_unmet_premise_is_returned() {
        let [n, x] = ["n", "x"].map(Var::index);
        let far = Expr::int(12345).lt(Expr::from(&x) * Expr::int(3));
        let even = Expr::binary(BinaryOp::Eq, Expr::from(&x).floor_mod(Expr::from(&n)), Expr::int(0));
        let start = Bindings::from([(n.clone(), 7), (x.clone(), -4)]);
        let mut found = start.clone();
        assert_eq!(satisfy_with_scalars(&mut found, std::slice::from_ref(&x), &[far.clone(), even.clone()], 3), None);
        assert!(found[&x] * 3 > 12345 && found[&x] % 7 == 0 && found[&n] == 7, "{found:?}");
        let mut kept = found.clone();
        assert_eq!(satisfy_with_scalars(&mut kept, std::slice::from_ref(&x), &[far.clone(), even], 4), None);
        assert_eq!(kept, found);
        let never = Expr::from(&x).lt(Expr::from(&x));
        let mut same = start.clone();
        assert!(satisfy_with_scalars(&mut same, &[x], &[far, never], 0).is_some());
        assert_eq!(same, start);
    }

    #[test]
    fn equations_give_values_and_free_ones_are_equal() {
        let [n, x, y, a, b, free] = ["n", "x", "y", "a", "b", "free"].map(Var::index);
        let equal = |left: &Var, right: Expr| Expr::binary(BinaryOp::Eq, Expr::from(left), right);
        let premises = [
            equal(&y, Expr::from(&x) * Expr::int(3)),
            equal(&x, Expr::from(&n)),
            equal(&b, Expr::from(&a)),
            Expr::int(0).lt(Expr::from(&free)),
        ];
        let mut found = Bindings::from([(n.clone(), 7)]);
        bind_by_equations(&mut found, &[x.clone(), y.clone(), a.clone(), b.clone(), free], &premises);
        assert_eq!(found, Bindings::from([(n.clone(), 7), (x, 7), (y, 21), (a.clone(), 0), (b.clone(), 0)]));
        let mut found = Bindings::from([(b.clone(), 4)]);
        bind_by_equations(&mut found, std::slice::from_ref(&a), &premises);
        assert_eq!(found[&a], 4);
    }

    #[test]
    fn the_same_seed_gives_the_same_values() {
        let make = |seed, part| Numbers::new(seed, part).tensor(ScalarType::Float32.into(), &[3, 5]).unwrap();
        assert_eq!(make(1, 2), make(1, 2));
        assert_ne!(make(1, 2), make(1, 3));
        assert_ne!(make(1, 2), make(2, 2));
    }
}
