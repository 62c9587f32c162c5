//! The algebra compared with evaluation, point by point.

use tilewright_ir::{BinaryOp, Bindings, Expr, IndexMap, InverseClaim, ScalarType, SharedExpr, Var};

mod conditions;
mod families;
mod inverses;

use super::{Ranges, inverse, physical_shape, simplify};

fn int(value: i64) -> Expr {
    Expr::int(value)
}

/// A small generator of pseudo-random numbers. Failure messages name the seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn expr(&mut self, vars: &[Var], depth: u32) -> Expr {
        let leaf = depth == 0 || self.below(5) == 0;
        if leaf {
            let pick = usize::try_from(self.below(vars.len() as u64 + 1)).unwrap();
            return vars.get(pick).map_or_else(|| int(self.below(14).cast_signed() - 3), Expr::from);
        }
        let (a, b) = (self.expr(vars, depth - 1), self.expr(vars, depth - 1));
        let divisor = int(self.below(9).cast_signed() + 1);
        match self.below(14) {
            0..=2 => a + b,
            3 => a - b,
            4 => a * b,
            5 | 6 => a * divisor,
            7 | 8 => a.floor_div(divisor),
            9 | 10 => a.floor_mod(divisor),
            11 => Expr::binary(BinaryOp::Min, a, b),
            12 => Expr::binary(BinaryOp::Max, a, b),
            _ => {
                let condition = self.condition(vars, depth - 1);
                Expr::Select(SharedExpr::new(condition), SharedExpr::new(a), SharedExpr::new(b))
            }
        }
    }

    fn condition(&mut self, vars: &[Var], depth: u32) -> Expr {
        let ops = [BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge, BinaryOp::Eq, BinaryOp::Ne];
        let op = ops[usize::try_from(self.below(6)).unwrap()];
        let comparison = Expr::binary(op, self.expr(vars, depth), self.expr(vars, depth));
        if self.below(3) == 0 { comparison.and(self.condition(vars, depth)) } else { comparison }
    }
}

/// All points of a shape, in row-major order.
fn points(extents: &[i128]) -> Vec<Vec<i128>> {
    extents.iter().fold(vec![Vec::new()], |points, &extent| {
        let extended = |point: &Vec<i128>| {
            let point = point.clone();
            (0..extent).map(move |value| point.iter().copied().chain([value]).collect()).collect::<Vec<_>>()
        };
        points.iter().flat_map(extended).collect()
    })
}

fn bind(vars: &[Var], point: &[i128]) -> Bindings {
    vars.iter().cloned().zip(point.iter().copied()).collect()
}

#[test]
fn simplification_preserves_values() {
    let vars: Vec<_> = ["i", "j", "k"].map(Var::index).to_vec();
    let extents = [5, 7, 12];
    let ranges = vars.iter().zip(extents).fold(Ranges::new(), |ranges, (var, extent)| ranges.with(var, &int(extent)));
    let all = points(&extents.map(i128::from));
    let mut compared = 0;
    for seed in 0..1500 {
        let mut random = Random(seed);
        let original =
            if seed % 3 == 0 { random.condition(&vars, 2) } else { random.expr(&vars, 2 + u32::from(seed % 2 == 0)) };
        let result = simplify(&original, &ranges);
        assert_eq!(result.dtype(), original.dtype());
        assert_eq!(simplify(&result, &ranges).to_string(), result.to_string(), "seed {seed}: {original}: not stable");
        for point in all.iter().step_by(7) {
            let bindings = bind(&vars, point);
            let Ok(expected) = original.eval_index(&bindings) else { continue };
            assert_eq!(result.eval_index(&bindings), Ok(expected), "seed {seed}: {original} became {result}");
            compared += 1;
        }
    }
    assert!(compared > 50_000, "{compared}");
}

#[test]
fn simplification_holds_for_every_value_of_symbolic_extents() {
    let (n, w) = (Var::index("N"), Var::index("W"));
    let vars: Vec<_> = ["i", "j"].map(Var::index).to_vec();
    let all = [n.clone(), w.clone(), vars[0].clone(), vars[1].clone()];
    let ranges = Ranges::new().with(&vars[0], &Expr::from(&n)).with(&vars[1], &Expr::from(&w));
    let mut random = Random(1);
    for _ in 0..1500 {
        let mut original = random.expr(&all, 3);
        original = match random.below(3) {
            0 => original.floor_div(Expr::from(&w)),
            1 => original.floor_mod(Expr::from(&w)),
            _ => original,
        };
        let result = simplify(&original, &ranges);
        for (extent_n, extent_w) in [(1, 1), (2, 5), (7, 3)] {
            for point in points(&[extent_n, extent_w]) {
                let mut bindings = bind(&vars, &point);
                bindings.extend([(n.clone(), extent_n), (w.clone(), extent_w)]);
                let Ok(expected) = original.eval_index(&bindings) else { continue };
                assert_eq!(result.eval_index(&bindings), Ok(expected), "{original} became {result} at {bindings:?}");
            }
        }
    }
}

#[test]
fn simplified_indices_are_printed_in_normal_form() {
    let [n, c, h] = ["n", "c", "h"].map(Var::index);
    let (symbol_h, symbol_w) = (Var::index("H"), Var::index("W"));
    let ranges =
        Ranges::new().with(&n, &int(6)).with(&c, &int(17)).with(&h, &Expr::from(&symbol_h)).with_symbol(&symbol_w);
    let [n, c, h, sh, sw] = [n, c, h, symbol_h, symbol_w].map(Expr::from);
    let show = |expr: Expr| simplify(&expr, &ranges).to_string();
    assert_eq!(show(int(63) - n.clone()), "63 - n");
    assert_eq!(show((n.clone() * int(17) + c.clone()).floor_div(int(17))), "n");
    assert_eq!(show((n.clone() * int(17) + c.clone()).floor_mod(int(17))), "c");
    assert_eq!(show((n.clone() * sh.clone() + h.clone()).floor_div(sh.clone())), "n");
    assert_eq!(show((n.clone() * sh.clone() + h.clone()).floor_mod(sh.clone())), "h");
    assert_eq!(show(c.clone().floor_div(int(2)).floor_div(int(3))), "c // 6");
    assert_eq!(show(c.clone().floor_mod(int(12)).floor_mod(int(4))), "c % 4");
    let wide = (n.clone() * int(5) + c.clone().floor_div(int(4))) * int(4) + c.clone().floor_mod(int(4));
    assert_eq!(show(wide), "n * 20 + c");
    assert_eq!(show((c.clone() - int(1)).floor_mod(int(4))), "(c + 3) % 4");
    let horner = ((n * sh.clone() + h.clone()) * sw.clone() + c) * int(4);
    assert_eq!(show(horner), "((n * H + h) * W + c) * 4");
    assert_eq!(show(h.lt(sh)), "True");
}

#[test]
fn simplification_keeps_types_and_introduces_no_overflow() {
    let i = Var::new("i", ScalarType::Int64);
    let wide = |value: i64| Expr::Int { value: value.into(), ty: ScalarType::Int64 };
    let ranges = Ranges::new().with(&i, &wide(5_000_000_000));
    let sum = simplify(&(Expr::from(&i) + wide(1) + wide(2)), &ranges);
    assert_eq!((sum.to_string(), sum.dtype().to_string()), ("i + 3".to_owned(), "int64".to_owned()));
    let j = Var::index("j");
    let ranges = Ranges::new().with(&j, &int(1000));
    // Multiplied out, 1000 * 3_000_000 would leave int32.
    let product = (Expr::from(&j) - int(999)) * int(3_000_000);
    assert_eq!(simplify(&product, &ranges).to_string(), "(j - 999) * 3000000");
}

fn map(vars: &[Var], domain: &[Expr], outputs: Vec<Expr>) -> IndexMap {
    IndexMap::new(vars.to_vec(), domain.to_vec(), outputs, vec![]).unwrap()
}

/// Compares shape, inverse and padding of a map with constant extents with enumeration, and returns the inverse.
pub(super) fn check_inverse(map: &IndexMap) -> InverseClaim {
    let shape = physical_shape(map, &[]).unwrap();
    let extents: Vec<_> = shape.extents.iter().map(|extent| extent.as_const_int().unwrap()).collect();
    let domain: Vec<_> = map.domain().iter().map(|extent| extent.as_const_int().unwrap()).collect();
    let images: Vec<_> =
        points(&domain).iter().map(|point| (map.eval(point, &Bindings::new()).unwrap(), point.clone())).collect();
    for (axis, &extent) in extents.iter().enumerate() {
        let largest = images.iter().map(|(image, _)| image[axis]).max().unwrap();
        assert_eq!(largest + 1, extent, "axis {axis} of {map}");
    }
    assert!(shape.padded_axes.is_empty());
    let inverse = inverse(map, &shape.extents, &[]).unwrap();
    let mut reached = 0;
    for point in points(&extents) {
        let bindings = bind(&inverse.vars, &point);
        let guarded = inverse.padding.eval_index(&bindings) == Ok(0);
        let from = images.iter().find(|(image, _)| *image == point);
        assert_eq!(guarded, from.is_some(), "{map} at {point:?}");
        if let Some((_, logical)) = from {
            let back: Vec<_> = inverse.outputs.iter().map(|output| output.eval_index(&bindings).unwrap()).collect();
            assert_eq!(&back, logical, "{map} at {point:?}");
            reached += 1;
        }
    }
    assert_eq!(reached, images.len());
    inverse
}

fn shown(inverse: &InverseClaim) -> (Vec<String>, Vec<String>, String) {
    let names = inverse.vars.iter().map(|var| var.name().to_owned()).collect();
    let outputs = inverse.outputs.iter().map(ToString::to_string).collect();
    (names, outputs, inverse.padding.to_string())
}

#[test]
fn inverses_of_constant_maps_are_right_at_every_point() {
    let vars = ["i", "j", "k"].map(Var::index);
    let [i, j, k] = [0, 1, 2].map(|axis: usize| Expr::from(&vars[axis]));
    let domain = [int(6), int(9), int(17)];
    let fused = i.clone() * int(9) + j.clone();
    let maps = [
        vec![k.clone(), i.clone(), j.clone()],
        vec![i.clone(), k.clone().floor_div(int(4)), j.clone(), k.clone().floor_mod(int(4))],
        vec![i.clone().floor_div(int(4)), j.clone() * int(17) + k.clone(), i.clone().floor_mod(int(4))],
        vec![fused.clone(), k.clone().floor_div(int(4)), k.clone().floor_mod(int(4))],
        vec![fused.clone().floor_div(int(4)), k.clone(), fused.floor_mod(int(4))],
        vec![int(5) - i.clone(), j.clone() + int(2), k.clone()],
        vec![i.clone() * int(20) + k.clone(), j.clone()],
        vec![
            i.clone(),
            j.clone(),
            k.clone().floor_div(int(8)),
            k.clone().floor_div(int(2)).floor_mod(int(4)),
            k.clone().floor_mod(int(2)),
        ],
        vec![i.clone(), (j.clone() + int(4)).floor_mod(int(9)), k.clone()],
        vec![i.clone(), (j.clone() + i.clone()).floor_mod(int(9)), k.clone()],
        vec![i.clone(), j.clone() * int(3), k.clone()],
        vec![i.clone(), j.clone(), i.clone() + k.clone()],
        vec![
            int(0) + i.clone(),
            (int(16) - k.clone()).floor_div(int(5)),
            j.clone(),
            (int(16) - k.clone()).floor_mod(int(5)),
        ],
    ];
    for outputs in maps {
        check_inverse(&map(&vars, &domain, outputs));
    }
}

#[test]
fn inverse_parameters_and_padding_are_named_after_the_indices() {
    let vars = ["n", "h", "c"].map(Var::index);
    let [n, h, c] = [0, 1, 2].map(|axis: usize| Expr::from(&vars[axis]));
    let blocked = vec![n.clone(), c.clone().floor_div(int(4)), h.clone(), c.clone().floor_mod(int(4))];
    let ragged = check_inverse(&map(&vars, &[int(2), int(3), int(17)], blocked.clone()));
    let (names, outputs, guard) = shown(&ragged);
    assert_eq!(names, ["n", "c_outer", "h", "c_inner"]);
    assert_eq!(outputs, ["n", "h", "c_outer * 4 + c_inner"]);
    assert_eq!(guard, "c_outer * 4 + c_inner >= 17");
    assert_eq!(shown(&check_inverse(&map(&vars, &[int(2), int(3), int(16)], blocked))).2, "False");
    let fused = check_inverse(&map(&vars, &[int(2), int(3), int(16)], vec![c, n * int(3) + h]));
    assert_eq!(shown(&fused).0, ["c", "n_h_fused"]);
    assert_eq!(shown(&fused).1, ["n_h_fused // 3", "n_h_fused % 3", "c"]);
    assert_eq!(shown(&fused).2, "False");
}

#[test]
fn symbolic_maps_are_inverted() {
    let vars = ["n", "h", "w", "c"].map(Var::index);
    let symbols = ["N", "H", "W", "C"].map(Var::index);
    let domain = symbols.clone().map(Expr::from);
    let [n, h, w, c] = [0, 1, 2, 3].map(|axis: usize| Expr::from(&vars[axis]));
    let blocked = vec![n.clone(), c.clone().floor_div(int(4)), h.clone(), w.clone(), c.clone().floor_mod(int(4))];
    let blocked = map(&vars, &domain, blocked);
    let shape = physical_shape(&blocked, &[]).unwrap();
    let shown_shape: Vec<_> = shape.extents.iter().map(ToString::to_string).collect();
    assert_eq!(shown_shape, ["N", "(C + 3) // 4", "H", "W", "4"]);
    assert_eq!(shape.padded_axes, [4]);
    let (_, outputs, guard) = shown(&inverse(&blocked, &shape.extents, &[]).unwrap());
    assert_eq!(outputs, ["n", "h", "w", "c_outer * 4 + c_inner"]);
    assert_eq!(guard, "c_outer * 4 + c_inner >= C");
    let fused = map(&vars, &domain, vec![(n * domain[1].clone() + h) * domain[2].clone() + w, c]);
    let shape = physical_shape(&fused, &[]).unwrap();
    assert_eq!(shape.extents[0].to_string(), "N * H * W");
    assert!(shape.padded_axes.is_empty());
    let (_, outputs, guard) = shown(&inverse(&fused, &shape.extents, &[]).unwrap());
    assert_eq!(outputs[2], "n_h_w_fused % W");
    assert_eq!(outputs[0], "n_h_w_fused // W // H");
    assert_eq!(guard, "False");
}

#[test]
fn maps_without_inverse_are_refused() {
    let vars = ["i", "j"].map(Var::index);
    let [i, j] = [0, 1].map(|axis: usize| Expr::from(&vars[axis]));
    let domain = [int(6), int(9)];
    for outputs in [
        vec![i.clone()],
        vec![i.clone() + j.clone()],
        vec![i.clone() * int(8) + j.clone()],
        vec![i.clone(), j.clone().floor_div(int(4))],
        vec![i.clone(), j.clone().floor_mod(int(4))],
        vec![i.clone() * j.clone(), j.clone()],
    ] {
        let map = map(&vars, &domain, outputs);
        let shape = physical_shape(&map, &[]).unwrap();
        assert_eq!(inverse(&map, &shape.extents, &[]).unwrap_err().code, "not-injective", "{map}");
    }
    let negative = physical_shape(&map(&vars, &domain, vec![i - int(2), j]), &[]).unwrap_err();
    assert!(negative.message.contains("is -2 at i = 0"), "{negative}");
}

#[test]
fn deep_nesting_is_simplified_in_bounded_time() {
    let i = Var::index("i");
    let ranges = Ranges::new().with(&i, &int(1000));
    let nested = |step: &dyn Fn(Expr) -> Expr| (0..40).fold(Expr::from(&i), |inner, _| step(inner));
    let unknown = Expr::from(Var::index("unknown"));
    let started = std::time::Instant::now();
    simplify(&nested(&|x| Expr::binary(BinaryOp::Min, x.floor_mod(int(77)), Expr::from(&i))), &ranges);
    simplify(&nested(&|x| (x * int(3) + int(1)).floor_div(int(2))), &ranges);
    simplify(&nested(&|x| (x * int(3) + Expr::from(&i)).floor_mod(int(101))), &ranges);
    let chosen =
        |x: Expr| Expr::Select(SharedExpr::new(x.lt(int(5))), SharedExpr::new(int(1)), SharedExpr::new(int(2)));
    simplify(&nested(&|x| chosen(x) + int(1).floor_div(unknown.clone())), &ranges);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}
