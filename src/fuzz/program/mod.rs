//! Programs: recipes from which functions are built.

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::{Buffer, Expr, ForKind, FuncAttrs, Module, PrimFunc, ScalarType, Stmt, Var};

use super::case::Case;
use super::config::Config;
use super::map::MapRecipe;

/// A program, as a recipe or as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramCase {
    /// As it was generated.
    Recipe(Recipe),
    /// As TVMScript, such as in a file that somebody wrote: exactly this program, whatever the generator becomes.
    Tvmscript {
        /// One function.
        text: String,
        /// Seed of the input values.
        seed: u64,
    },
}

/// What a generated program is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Seed of the input values.
    pub seed: u64,
    /// The shape, and the layout of the input.
    pub layout: MapRecipe,
}

/// A program ready to run.
#[derive(Clone, Debug)]
pub struct Program {
    /// The function; it validates.
    pub func: PrimFunc,
    /// Seed of the input values.
    pub seed: u64,
}

impl ProgramCase {
    /// The program.
    ///
    /// # Errors
    /// It does not validate, or the text cannot be read: in a sentence.
    pub fn build(&self) -> Result<Program, String> {
        let (func, seed) = match self {
            Self::Recipe(recipe) => (recipe.func().ok_or("no function")?, recipe.seed),
            Self::Tvmscript { text, seed } => {
                let module = tilewright_script::read_module(text);
                let module = module.map_err(|found| found.first().map_or(String::new(), ToString::to_string))?;
                (module.funcs.into_iter().next().ok_or("no function")?, *seed)
            }
        };
        match tilewright_ir::validate(&func) {
            Ok(_) => Ok(Program { func, seed }),
            Err(found) => Err(found.first().map_or_else(|| "not valid".to_owned(), ToString::to_string)),
        }
    }
}

impl Recipe {
    fn func(&self) -> Option<PrimFunc> {
        let built = self.layout.build()?;
        let shape: Vec<Expr> = self.layout.shape.iter().map(|&extent| Expr::int(extent)).collect();
        let source = Buffer::compact("A", ScalarType::Float32, shape.clone());
        let target = Buffer::compact("B", ScalarType::Float32, shape.clone());
        let vars: Vec<Var> = (0..shape.len()).map(|axis| Var::index(format!("i{axis}"))).collect();
        let at = || vars.iter().map(Expr::from).collect::<Vec<_>>();
        let value = Expr::load(&source, at()) + Expr::float_of(1.0, ScalarType::Float32);
        let mut body = Stmt::store(&target, at(), value);
        for (var, extent) in vars.iter().zip(&shape).rev() {
            body = Stmt::for_loop(var, extent.clone(), ForKind::Serial, body);
        }
        let mut attrs = FuncAttrs::default();
        attrs.layout_transform_map.push((source.data.clone(), vec![built.map]));
        let params = ["a", "b"].map(|name| Var::new(name, ScalarType::Handle));
        let buffer_map = params.iter().cloned().zip([source, target]).collect();
        Some(PrimFunc { name: "main".into(), params: params.to_vec(), buffer_map, attrs, body })
    }
}

impl Case for ProgramCase {
    fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        Ok(Self::Recipe(Recipe { seed: u.arbitrary()?, layout: MapRecipe::draw(u, config)? }))
    }

    fn simpler(&self) -> Vec<Self> {
        let Self::Recipe(recipe) = self else { return Vec::new() };
        let layouts = recipe.layout.simpler().into_iter();
        layouts.map(|layout| Self::Recipe(Recipe { layout, ..recipe.clone() })).collect()
    }

    fn features(&self) -> Vec<String> {
        match self {
            Self::Recipe(recipe) => recipe.layout.features(),
            Self::Tvmscript { .. } => Vec::new(),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Tvmscript { text, .. } => text.clone(),
            Self::Recipe(_) => match self.build() {
                Ok(program) => tilewright_script::print_module(&Module { funcs: vec![program.func] }),
                Err(why) => format!("{self:?}: {why}"),
            },
        }
    }
}
