//! Random maps, programs, and mistakes in them.

use std::sync::Arc;

use tilewright_ir::{
    AxisSeparators, BinaryOp, Buffer, Expr, ForKind, FuncAttrs, IndexMap, PrimFunc, ScalarType, SharedExpr, Stmt,
    StmtKind, Var,
};

/// Numbers from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((bits >> 33) % bound.max(1) as u64).unwrap()
    }

    pub(crate) fn chance(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    pub(crate) fn pick<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len())]
    }

    pub(crate) fn number(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.below(usize::try_from(high - low + 1).unwrap())).unwrap()
    }
}

pub(crate) fn int(value: i64) -> Expr {
    Expr::int(value)
}

/// A map with the shape that is claimed for it.
pub(crate) struct Claimed {
    pub(crate) map: IndexMap,
    pub(crate) shape: Vec<Expr>,
    pub(crate) padded: Vec<usize>,
}

fn ceil_div(extent: &Expr, by: i64) -> Expr {
    extent.as_const_int().map_or_else(
        || (extent.clone() + int(by - 1)).floor_div(int(by)),
        |extent| int((i64::try_from(extent).unwrap() + by - 1) / by),
    )
}

fn product(a: &Expr, b: &Expr) -> Expr {
    match (a.as_const_int(), b.as_const_int()) {
        (Some(a), Some(b)) => int(i64::try_from(a * b).unwrap()),
        _ => a.clone() * b.clone(),
    }
}

/// Splits, reverses, rotates, swizzles, permutes and fuses the axes of a shape; with mistakes, if asked for.
pub(crate) fn claimed(random: &mut Random, domain: &[Expr], mistakes: bool) -> Claimed {
    let vars: Vec<Var> = (0..domain.len()).map(|axis| Var::index(format!("x{axis}"))).collect();
    let wrong = |random: &mut Random| mistakes && random.chance(8);
    let mut digits: Vec<(Expr, Expr, bool)> = Vec::new();
    for (var, extent) in vars.iter().zip(domain) {
        let mut index = Expr::from(var);
        let mut extent = extent.clone();
        let mut padded = false;
        match random.below(8) {
            0 => index = extent.clone() - int(i64::from(!wrong(random))) - index,
            1 => index = (index + int(random.number(1, 5))).floor_mod(extent.clone()),
            2 => {
                let by = random.number(1, 3);
                index = index + int(by);
                extent = extent + int(by - i64::from(wrong(random)));
            }
            3 => {
                index = Expr::binary(BinaryOp::BitXor, index, int(1));
                extent = product(&ceil_div(&extent, 2), &int(2));
                padded = true;
            }
            _ => {}
        }
        if random.chance(2) {
            let by = random.number(2, 4);
            let low = if wrong(random) { by + 1 } else { by };
            let bound = if wrong(random) { extent.clone().floor_div(int(by)) } else { ceil_div(&extent, by) };
            digits.push((index.clone().floor_div(int(by)), bound, padded));
            digits.push((index.floor_mod(int(low)), int(by), true));
        } else {
            digits.push((index, extent, padded));
        }
    }
    for position in (1..digits.len()).rev() {
        let other = random.below(position + 1);
        digits.swap(position, other);
    }
    if wrong(random) && digits.len() > 1 {
        digits.pop();
    }
    while digits.len() > 1 && random.chance(3) {
        let at = random.below(digits.len() - 1);
        let (low, extent, padded) = digits.remove(at + 1);
        let (high, above, other) = digits[at].clone();
        let radix = if wrong(random) { extent.clone() - int(1) } else { extent.clone() };
        digits[at] = (high * radix + low, product(&above, &extent), padded || other);
    }
    let padded = (0..digits.len()).filter(|&axis| digits[axis].2 && !random.chance(4)).collect();
    let outputs = digits.iter().map(|(index, ..)| index.clone()).collect();
    let map = IndexMap::new(vars, domain.to_vec(), outputs, Vec::new()).unwrap();
    Claimed { map, shape: digits.into_iter().map(|(_, extent, _)| extent).collect(), padded }
}

fn each(var: &Var, extent: i64, body: Stmt) -> Stmt {
    Stmt::for_loop(var, int(extent), ForKind::Serial, body)
}

/// A program on `A` (input), `B` and `C` (outputs), with a temporary and an alias, in random layouts.
pub(crate) fn program(random: &mut Random) -> PrimFunc {
    let (h, w) = *random.pick(&[(2, 7), (3, 5), (5, 2), (7, 3)]);
    let mut layouts = Vec::new();
    let mut tensor = |name: &str, shape: &[i64], random: &mut Random| {
        let buffer = Buffer::compact(name, ScalarType::Int32, shape.iter().copied().map(int).collect());
        if random.chance(2) {
            return buffer;
        }
        let map = claimed(random, &buffer.shape, false).map;
        let rank = map.outputs().len();
        let positions = if rank > 1 && random.chance(3) { vec![1 + random.below(rank - 1)] } else { Vec::new() };
        let buffer = buffer.with(|info| info.axis_separators = AxisSeparators::new(positions, rank).unwrap());
        layouts.push((buffer.data.clone(), vec![map]));
        buffer
    };
    let (a, b) = (tensor("A", &[h, w], random), tensor("B", &[h, w], random));
    let (c, t) = (tensor("C", &[h], random), tensor("T", &[h, w], random));
    let alias = t.with(|info| info.name = "V".into());
    let read_as = if random.chance(3) { alias.clone() } else { t.clone() };
    let [i, j, p, q, r, s, x] = ["i", "j", "p", "q", "r", "s", "x"].map(Var::index);
    let [ie, je, pe, qe, re, se, xe] = [&i, &j, &p, &q, &r, &s, &x].map(Expr::from);
    let source = Expr::load(&a, vec![ie.clone(), je.clone()]);
    let first = match random.below(4) {
        0 => source + ie.clone() * int(3),
        1 => {
            let inside = (je.clone() + int(1)).lt(int(w));
            let next = Expr::load(&a, vec![ie.clone(), je.clone() + int(1)]);
            source * Expr::IfThenElse(SharedExpr::new(inside), SharedExpr::new(next), SharedExpr::new(int(2)))
        }
        2 => {
            let cond = je.clone().lt(int(2));
            Expr::Select(
                SharedExpr::new(cond),
                SharedExpr::new(source.clone()),
                SharedExpr::new(source - je.clone().floor_div(int(2))),
            )
        }
        _ => source - Expr::load(&a, vec![int(h - 1) - ie.clone(), je.clone()]),
    };
    let fill = each(&i, h, each(&j, w, Stmt::store(&t, vec![ie, je], first)));
    let load = |row: Expr, column: Expr| Expr::load(&read_as, vec![row, column]);
    let second = match random.below(3) {
        0 => {
            let body = Stmt::store(&b, vec![pe.clone(), xe.clone()], load(pe.clone(), xe));
            let value = (qe.clone() + int(1)).floor_mod(int(w));
            Stmt::new(StmtKind::Let { var: x.clone(), value, body: Arc::new(body) })
        }
        1 => {
            let guard = qe.clone().lt(int(w - 1));
            let body = Stmt::store(&b, vec![pe.clone(), qe.clone() + int(1)], load(pe.clone(), qe.clone()));
            Stmt::guarded(guard, body)
        }
        _ => Stmt::store(&b, vec![pe.clone(), qe.clone()], load(pe.clone(), int(w - 1) - qe.clone()) + pe.clone()),
    };
    let second = each(&p, h, each(&q, w, second));
    let sum = Stmt::store(&c, vec![re.clone()], Expr::load(&c, vec![re.clone()]) + load(re.clone(), se));
    let reduce = each(&r, h, Stmt::seq(vec![Stmt::store(&c, vec![re], int(0)), each(&s, w, sum)]));
    let mut body = Stmt::seq(vec![fill, second, reduce]);
    if read_as == alias {
        body = Stmt::new(StmtKind::DeclBuffer { buffer: alias, body: Arc::new(body) });
    }
    let body = Stmt::new(StmtKind::Allocate { buffer: t.clone(), body: Arc::new(body) });
    let handles: Vec<_> = ["a", "b", "c"].map(|name| Var::new(name, ScalarType::Handle)).to_vec();
    let buffer_map = handles.iter().cloned().zip([a.clone(), b.clone(), c.clone()]).collect();
    let attrs = FuncAttrs { layout_transform_map: layouts, ..FuncAttrs::default() };
    PrimFunc { name: "main".into(), params: handles, buffer_map, attrs, body }
}

/// The program with one change somewhere.
pub(crate) fn mutated(random: &mut Random, func: &PrimFunc) -> PrimFunc {
    tilewright::fuzz::mutate::mutated_program(func, random.below(1 << 40) as u64)
}
