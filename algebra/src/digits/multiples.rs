//! Extents that are assumed to be multiples of a constant: under `C % 4 == 0`, `C` is written as `4 * k` for a new
//! symbol `k`, the certificate is found for that, and `k` is replaced by `C // 4` in the result.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, DigitCertificate, DigitSum, DigitView, Expr, IndexMap, InverseClaim, Var};

/// Triples of a symbol, the constant that divides it, and the new symbol that stands for the quotient.
pub(super) struct Multiples(Vec<(Var, i128, Var)>);

impl Multiples {
    /// Collects the assumptions of the form `symbol % constant == 0`; the first one of each symbol counts.
    pub(super) fn from_assumptions(assumptions: &[Expr]) -> Self {
        let mut found: Vec<(Var, i128, Var)> = Vec::new();
        for assumption in assumptions {
            if let Some((var, factor)) = divisibility(assumption)
                && found.iter().all(|(known, ..)| known != var)
            {
                found.push((var.clone(), factor, Var::new(var.name(), var.dtype())));
            }
        }
        Self(found)
    }

    /// Whether to_products is no such assumption.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Finds a certificate for the map with every such symbol replaced by its product, and writes it in terms of the
    /// symbols again.
    pub(super) fn certificate(
        &self,
        map: &IndexMap,
        shape: &[Expr],
        inverse: Option<&InverseClaim>,
        meaning: Option<&IndexMap>,
        assumptions: &[Expr],
    ) -> Option<DigitCertificate> {
        let vars: Vec<Var> = self.0.iter().map(|(var, ..)| var.clone()).collect();
        let factor = |(var, factor, times): &(Var, i128, Var)| {
            Some(Expr::int_of(*factor, var.dtype().scalar)? * Expr::from(times))
        };
        let products = self.0.iter().map(factor).collect::<Option<Vec<_>>>()?;
        let to_products = Substitution::new(&vars, products);
        let all = |exprs: &[Expr]| exprs.iter().map(|expr| to_products.apply(expr)).collect::<Vec<_>>();
        let moved =
            |map: &IndexMap| IndexMap::new(map.vars().to_vec(), all(map.domain()), all(map.outputs()), Vec::new()).ok();
        let inverse = inverse.map(|inverse| InverseClaim {
            vars: inverse.vars.clone(),
            outputs: all(&inverse.outputs),
            padding: to_products.apply(&inverse.padding),
        });
        let meaning = meaning.and_then(moved);
        let found = super::find(&moved(map)?, &all(shape), inverse.as_ref(), meaning.as_ref(), &all(assumptions))?;
        // Substituting the quotients is exact: the new symbol is `C // 4` because 4 divides C.
        let times: Vec<Var> = self.0.iter().map(|(.., times)| times.clone()).collect();
        let quotient = |(var, factor, _): &(Var, i128, Var)| {
            Some(Expr::from(var).floor_div(Expr::int_of(*factor, var.dtype().scalar)?))
        };
        let quotients = self.0.iter().map(quotient).collect::<Option<Vec<_>>>()?;
        Some(substituted(found, &Substitution::new(&times, quotients)))
    }
}

/// Returns the variable and the constant of an assumption `x % k == 0`.
fn divisibility(assumption: &Expr) -> Option<(&Var, i128)> {
    let Expr::Binary(BinaryOp::Eq, lhs, rhs) = assumption else { return None };
    let Expr::Binary(BinaryOp::FloorMod, base, factor) = lhs.as_ref() else { return None };
    let (Expr::Var(var), Some(0)) = (base.as_ref(), rhs.as_const_int()) else { return None };
    Some((var, factor.as_const_int().filter(|&factor| factor > 0)?))
}

/// Returns the certificate with a substitution applied to each of its expressions.
fn substituted(certificate: DigitCertificate, substitution: &Substitution) -> DigitCertificate {
    let all = |exprs: Vec<Expr>| exprs.iter().map(|expr| substitution.apply(expr)).collect::<Vec<_>>();
    let sum = |mut sum: DigitSum| {
        for place in &mut sum.places {
            place.weight = substitution.apply(&place.weight);
        }
        DigitSum { offset: substitution.apply(&sum.offset), ..sum }
    };
    let view = |view: DigitView| DigitView {
        radices: view.radices.into_iter().map(all).collect(),
        outputs: view.outputs.into_iter().map(sum).collect(),
    };
    DigitCertificate {
        map: view(certificate.map),
        sources: certificate.sources,
        inverse: certificate.inverse.map(view),
        witnesses: certificate.witnesses.into_iter().map(|witness| witness.map(all)).collect(),
    }
}
