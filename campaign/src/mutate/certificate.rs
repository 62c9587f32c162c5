//! All digit certificates that differ from a valid one in one place. None of them may be accepted
//! in its place.

use tilewright_ir::{DigitCertificate, DigitSum, DigitView, Expr, Var};

/// Mutants, each with a description of the change.
pub type Mutants = Vec<(String, DigitCertificate)>;

/// The outputs that a view states, as expressions of the given variables. `None` if it refers to
/// digits that do not exist.
pub fn written(view: &DigitView, vars: &[Var]) -> Option<Vec<Expr>> {
    let digit = |axis: usize, digit: usize| -> Option<Expr> {
        let (var, radices) = (vars.get(axis)?, view.radices.get(axis)?);
        let below = radices.get(..digit)?.iter().cloned().reduce(|a, b| a * b);
        let rest = below.map_or_else(|| Expr::from(var), |below| Expr::from(var).floor_div(below));
        Some(radices.get(digit).map_or(rest.clone(), |radix| rest.floor_mod(radix.clone())))
    };
    let output = |sum: &DigitSum| {
        let places = sum.places.iter().map(|place| Some(place.weight.clone() * digit(place.axis, place.digit)?));
        places
            .collect::<Option<Vec<_>>>()
            .map(|places| places.into_iter().fold(sum.offset.clone(), |sum, part| sum + part))
    };
    view.outputs.iter().map(output).collect()
}

/// Values close to an expression, its double, and small constants.
fn numbers(expr: &Expr) -> Vec<Expr> {
    let one = || Expr::int(1);
    vec![expr.clone() + one(), expr.clone() - one(), expr.clone() * Expr::int(2), one(), Expr::int(0), Expr::int(7)]
}

/// The list with one item dropped, repeated, or swapped with the next one; with the name of the
/// change.
fn lists<T: Clone>(list: &[T]) -> Vec<(&'static str, Vec<T>)> {
    let mut found = Vec::new();
    for position in 0..list.len() {
        let mut shorter = list.to_vec();
        shorter.remove(position);
        found.push(("dropped", shorter));
        let mut longer = list.to_vec();
        longer.insert(position, list[position].clone());
        found.push(("doubled", longer));
        if position + 1 < list.len() {
            let mut swapped = list.to_vec();
            swapped.swap(position, position + 1);
            found.push(("swapped", swapped));
        }
    }
    found
}

/// Other positions: the neighbours, the first, and one that is out of range.
fn positions(number: usize) -> Vec<usize> {
    [number.wrapping_add(1), number.wrapping_sub(1), 0, 99].into_iter().filter(|other| *other != number).collect()
}

/// All mutants of a certificate.
pub fn all(valid: &DigitCertificate) -> Mutants {
    let mut found: Mutants = Vec::new();
    for (what, view) in views(&valid.map) {
        found.push((format!("map: {what}"), DigitCertificate { map: view, ..valid.clone() }));
    }
    for (what, view) in valid.inverse.iter().flat_map(views) {
        found.push((format!("inverse: {what}"), DigitCertificate { inverse: Some(view), ..valid.clone() }));
    }
    if valid.inverse.is_some() {
        found.push(("no inverse".into(), DigitCertificate { inverse: None, ..valid.clone() }));
    }
    for (what, sources) in lists(&valid.sources) {
        found.push((format!("source {what}"), DigitCertificate { sources, ..valid.clone() }));
    }
    for position in 0..valid.sources.len() {
        let source = valid.sources[position];
        // One number is changed at a time: two wrong numbers may describe another valid certificate.
        let mut changed = Vec::new();
        changed.extend(positions(source.axis).into_iter().map(|axis| tilewright_ir::DigitSource { axis, ..source }));
        changed.extend(positions(source.digit).into_iter().map(|digit| tilewright_ir::DigitSource { digit, ..source }));
        changed
            .extend(positions(source.output).into_iter().map(|output| tilewright_ir::DigitSource { output, ..source }));
        changed.extend(positions(source.place).into_iter().map(|place| tilewright_ir::DigitSource { place, ..source }));
        for source in changed {
            let mut mutant = valid.clone();
            mutant.sources[position] = source;
            found.push((format!("source {position}"), mutant));
        }
    }
    witnesses(valid, &mut found);
    found
}

/// Mutants of the witnesses.
fn witnesses(valid: &DigitCertificate, found: &mut Mutants) {
    for (what, witnesses) in lists(&valid.witnesses) {
        found.push((format!("witness {what}"), DigitCertificate { witnesses, ..valid.clone() }));
    }
    for (output, witness) in valid.witnesses.iter().enumerate() {
        let Some(values) = witness else { continue };
        for (what, list) in lists(values) {
            let mut mutant = valid.clone();
            mutant.witnesses[output] = Some(list);
            found.push((format!("value of witness {what}"), mutant));
        }
        for (position, value) in values.iter().enumerate() {
            for value in changed(value) {
                let mut mutant = valid.clone();
                if let Some(values) = &mut mutant.witnesses[output] {
                    values[position] = value;
                }
                found.push((format!("witness {output}"), mutant));
            }
        }
    }
}

/// Other values for an expression, without those that are equal as constants.
fn changed(expr: &Expr) -> Vec<Expr> {
    let none = tilewright_ir::Bindings::new();
    let same = |other: &Expr| {
        let (a, b) = (expr.eval_index(&none), other.eval_index(&none));
        a.is_ok() && a == b
    };
    numbers(expr).into_iter().filter(|other| other != expr && !same(other)).collect()
}

/// Mutants of a view: its axes, radices and outputs.
fn views(view: &DigitView) -> Vec<(String, DigitView)> {
    let mut found = Vec::new();
    for (what, radices) in lists(&view.radices) {
        found.push((format!("axis {what}"), DigitView { radices, ..view.clone() }));
    }
    for (axis, radices) in view.radices.iter().enumerate() {
        let mut put = |what: String, radices: Vec<Expr>| {
            let mut mutant = view.clone();
            mutant.radices[axis] = radices;
            found.push((what, mutant));
        };
        for (what, list) in lists(radices) {
            put(format!("radix {what}"), list);
        }
        for position in 0..radices.len() {
            for radix in changed(&radices[position]) {
                let mut list = radices.clone();
                list[position] = radix;
                put(format!("radix {position} of {axis}"), list);
            }
        }
        // The digit above the last radix has no bound of its own. One more radix limits it to 0 and 1, which is true only
        // of short axes.
        let longer = [radices.as_slice(), &[Expr::int(2)]].concat();
        put("radix added".into(), longer);
    }
    for (what, outputs) in lists(&view.outputs) {
        found.push((format!("output {what}"), DigitView { outputs, ..view.clone() }));
    }
    for (output, sum) in view.outputs.iter().enumerate() {
        for (what, sum) in sums(sum) {
            let mut mutant = view.clone();
            mutant.outputs[output] = sum;
            found.push((format!("{what} of output {output}"), mutant));
        }
    }
    found
}

/// Mutants of one output's sum: its offset, places, weights, axes and digits.
fn sums(sum: &DigitSum) -> Vec<(String, DigitSum)> {
    let mut found = Vec::new();
    for offset in changed(&sum.offset) {
        found.push(("offset".to_owned(), DigitSum { offset, ..sum.clone() }));
    }
    for (what, places) in lists(&sum.places) {
        found.push((format!("place {what}"), DigitSum { places, ..sum.clone() }));
    }
    for position in 0..sum.places.len() {
        let mut put = |what: &str, change: &dyn Fn(&mut tilewright_ir::DigitPlace)| {
            let mut mutant = sum.clone();
            change(&mut mutant.places[position]);
            found.push((format!("{what} of place {position}"), mutant));
        };
        // Other positions may be out of range, which the checker has to reject without an access.
        let place = &sum.places[position];
        for weight in changed(&place.weight) {
            put("weight", &|place| place.weight = weight.clone());
        }
        for axis in positions(place.axis) {
            put("axis", &|place| place.axis = axis);
        }
        for digit in positions(place.digit) {
            put("digit", &|place| place.digit = digit);
        }
    }
    found
}
