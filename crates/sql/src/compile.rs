//! Query compiler: name resolution, parameter binding and constant folding, from syntax tree to `Block`.
//!
//! Guarantees: every name is a slot, every parameter a value, and every subexpression that does not depend on a row is
//! evaluated once, here. Rules that a query can break without being meaningless (`SC2101` and the like) are enforced
//! by `check`.

mod distance; // VectorDistance
mod full_text; // full-text functions
mod group; // expressions over a group
mod scalar; // one expression

use pleiad_model::env::ManualEnv;
use pleiad_model::policy::{FullTextPolicy, Geospatial, VectorEmbedding};
use pleiad_model::{Error, Result, Value};

use crate::Parameters;
use crate::block::{Block, Filter, Grouping, Output, OutputExpr, RowSource, RowSourceKind, ScalarExpr, SortKey};
use crate::check;
use crate::expr::functions::Varies;
use crate::expr::{CheckLimit, Context, MemoryBudget, evaluate};
use crate::parse::ast::{self, Expr, ExprKind, OrderBy, Select, SelectItem, SelectSpec};
use crate::parse::{Diagnostic, Span};

pub use distance::{check_options, is_distance};

/// The memory limit for folding a constant.
const FOLDED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Interrupt checks allowed while folding. An expression that takes longer is evaluated when the query runs, where the
/// caller checks a deadline.
const FOLDED_CHECKS_MAX: u32 = 1;

/// The memory limit for parameter values; each value counts once per use in the text.
pub const PARAMETER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What a query is compiled with, besides its text: parameters and the container's policies.
#[derive(Clone, Copy)]
pub struct BindContext<'q> {
    pub parameters: &'q Parameters,
    pub geospatial: Geospatial,
    /// The vector embedding policy of the container.
    pub embeddings: &'q [VectorEmbedding],
    /// The languages of text paths. Without a policy, text is English.
    pub full_text: Option<&'q FullTextPolicy>,
    /// When the run began; `None` if the block is compiled for a plan that a client executes later.
    pub started_ms: Option<u64>,
}

/// `text` is the query text that the tree was parsed from; diagnostics point into it.
pub fn compile(select: &Select, text: &str, bind: BindContext<'_>) -> Result<Block> {
    let memory = &MemoryBudget::new(PARAMETER_BYTES_MAX);
    let mut compiler = Compiler { text, bind, memory, names: Vec::new(), grouped: None, root: RootBinding::Free };
    compiler.block(select)
}

/// The value of an expression that reads no row. The outer `None`: the expression reads a row, or the memory budget is
/// exhausted.
pub fn constant(expr: &Expr, bind: BindContext<'_>, memory: &MemoryBudget) -> Option<Option<Value>> {
    if references_row(expr) {
        return None; // fast path: skips building an error message that would be discarded
    }
    let mut compiler = Compiler { text: "", bind, memory, names: Vec::new(), grouped: None, root: RootBinding::Bound };
    match compiler.scalar(expr).ok()? {
        ScalarExpr::Constant(value) => Some(Some(value)),
        ScalarExpr::Undefined => Some(None),
        _ => None,
    }
}

/// Ignores subqueries, which have their own names.
fn references_row(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Name(_))
        || expr.each_child(&mut |child| if references_row(child) { Err(()) } else { Ok(()) }).is_err()
}

struct Compiler<'q> {
    text: &'q str,
    bind: BindContext<'q>,
    /// Limits the parameter values, which are copied into the block once per use in the text.
    memory: &'q MemoryBudget,
    /// One per slot, outermost first. A slot without a name cannot be referenced.
    names: Vec<Option<String>>,
    /// Set while expressions over a group are compiled.
    grouped: Option<group::Grouped>,
    root: RootBinding,
}

/// Whether a name that is not an alias can still refer to the container.
#[derive(Clone, Copy, PartialEq)]
enum RootBinding {
    Free,
    /// Slot 0 is the item, and the FROM source being compiled may still refer to it.
    Opened,
    Bound,
}

impl<'q> Compiler<'q> {
    fn block(&mut self, select: &'q Select) -> Result<Block> {
        let base = self.names.len();
        let (reads_items, sources) = self.sources(&select.from)?;
        self.root = RootBinding::Bound;
        let first = base + usize::from(reads_items);
        let filters = self.filters(select.filter.as_ref(), first)?;
        let mut order = self.order(select.order_by.as_ref())?;
        let mut output = self.output(select, base)?;
        if let Output::Groups(grouping, _) = &mut output {
            let order = std::mem::take(&mut order);
            // A single aggregate row needs no sorting.
            grouping.order = if grouping.single_group { Vec::new() } else { order };
        }
        self.names.truncate(base);
        let (offset, take) = self.counts(select)?;
        let distinct = select.distinct;
        Ok(Block { base, reads_items, sources, filters, output, distinct, order, offset, take })
    }

    // FROM

    fn sources(&mut self, from: &'q [ast::FromItem]) -> Result<(bool, Vec<RowSource>)> {
        let mut reads_items = false;
        let mut sources = Vec::new();
        for source in from {
            let opens = self.root == RootBinding::Free && self.is_container_scoped(&source.expr);
            if opens {
                self.root = RootBinding::Opened;
                reads_items = true;
                self.names.push(None);
            }
            let name = source.alias.as_ref().map(|name| name.text.clone());
            let name = name.or_else(|| source.expr.inferred_name().map(str::to_owned));
            if opens && !source.unnest && matches!(source.expr.kind, ExprKind::Name(_)) {
                // `FROM c`: the item itself is the row.
                self.bind_last(name);
            } else {
                let kind = self.source_of(&source.expr)?;
                self.names.push(name);
                sources.push(RowSource { unnest: source.unnest, kind });
            }
            self.root = RootBinding::Bound;
        }
        Ok((reads_items, sources))
    }

    fn bind_last(&mut self, name: Option<String>) {
        if let Some(last) = self.names.last_mut() {
            *last = name;
        }
    }

    /// True if this source starts from the container, not from an alias.
    fn is_container_scoped(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Name(name) => self.slot(name).is_none(),
            ExprKind::Access { base, .. } => self.is_container_scoped(base),
            ExprKind::Subquery { select, .. } => {
                select.from.first().is_some_and(|source| self.is_container_scoped(&source.expr))
            }
            _ => false,
        }
    }

    fn source_of(&mut self, expr: &'q Expr) -> Result<RowSourceKind> {
        match &expr.kind {
            ExprKind::Subquery { form: ast::SubqueryForm::Scalar, select } => {
                let over_items = self.root == RootBinding::Opened;
                let mut block = self.block(select)?;
                block.distinct &= !(over_items && select.returns_whole_items());
                if over_items && (block.distinct || matches!(block.output, Output::Groups(..))) {
                    let feature = "GROUP BY, DISTINCT or an aggregate in a subquery over the whole container";
                    return Err(Error::unsupported(feature));
                }
                Ok(RowSourceKind::Rows(Box::new(block)))
            }
            _ => self.scalar(expr).map(RowSourceKind::Scalar),
        }
    }

    // WHERE

    /// Splits the conjuncts, so that each is evaluated before the next source multiplies the rows.
    fn filters(&mut self, filter: Option<&'q Expr>, first: usize) -> Result<Vec<Filter>> {
        let conjuncts = match filter {
            None => return Ok(Vec::new()),
            Some(Expr { kind: ExprKind::And(terms), .. }) => terms.as_slice(),
            Some(term) => std::slice::from_ref(term),
        };
        let mut filters = Vec::with_capacity(conjuncts.len());
        for term in conjuncts {
            match self.scalar(term)? {
                ScalarExpr::And(nodes) => filters.extend(nodes.into_iter().map(|node| filter_at(node, first))),
                ScalarExpr::Constant(Value::Bool(true)) => {}
                node => filters.push(filter_at(node, first)),
            }
        }
        Ok(filters)
    }

    // ORDER BY

    fn order(&mut self, order: Option<&'q OrderBy>) -> Result<Vec<SortKey>> {
        match order {
            None => Ok(Vec::new()),
            Some(OrderBy::Rank(_)) => Err(Error::unsupported("The query clause ORDER BY RANK")),
            Some(OrderBy::Keys(keys)) => keys.iter().map(|key| self.sort_key(key)).collect(),
        }
    }

    fn sort_key(&mut self, key: &'q ast::OrderByItem) -> Result<SortKey> {
        let descending = match &key.expr.kind {
            ExprKind::Call { arguments, .. } if is_distance(&key.expr) && key.direction.is_none() => {
                self.sorts_descending(arguments, &key.expr)?
            }
            _ => key.descending,
        };
        Ok(SortKey { node: self.scalar(&key.expr)?, descending })
    }

    // SELECT

    fn output(&mut self, select: &'q Select, base: usize) -> Result<Output> {
        if select.group_by.is_empty() && !check::has_aggregate(&select.spec) {
            return Ok(Output::Rows(self.project(&select.spec, base)?));
        }
        let keys = select.group_by.iter().map(|key| self.scalar(key)).collect::<Result<Vec<_>>>()?;
        let saved = self.grouped.replace(group::Grouped::new(base, &select.group_by));
        let project = self.project(&select.spec, base);
        let grouped = std::mem::replace(&mut self.grouped, saved);
        let aggregates = grouped.map(|grouped| grouped.aggregates).unwrap_or_default();
        let (order, single_group) = (Vec::new(), select.group_by.is_empty());
        Ok(Output::Groups(Grouping { keys, order, aggregates, single_group }, project?))
    }

    fn project(&mut self, spec: &'q SelectSpec, base: usize) -> Result<OutputExpr> {
        match spec {
            SelectSpec::Star(span) => self.select_star(*span, base),
            SelectSpec::Value(item) => Ok(OutputExpr::Value(self.scalar(&item.expr)?)),
            SelectSpec::List(items) => Ok(OutputExpr::Object(self.columns(items)?)),
        }
    }

    fn select_star(&self, span: Span, base: usize) -> Result<OutputExpr> {
        // The item has a slot even if it has no name.
        let hidden = usize::from(self.names.len() > base + 1 && self.names.get(base) == Some(&None));
        match self.names.len() - base - hidden {
            1 => Ok(OutputExpr::Value(ScalarExpr::Slot(self.names.len() - 1))),
            _ => Err(self.error(span, "SC2040", "'SELECT *' is only valid with a single input set.")),
        }
    }

    /// Names each output column. Columns without a name are numbered among themselves: `$1`, `$2`, …
    fn columns(&mut self, items: &'q [SelectItem]) -> Result<Vec<(String, ScalarExpr)>> {
        let mut unnamed = 0;
        let mut columns = Vec::with_capacity(items.len());
        for SelectItem { expr, alias } in items {
            let name = alias.as_ref().map(|name| name.text.as_str()).or_else(|| expr.inferred_name());
            let name = name.map(str::to_owned).unwrap_or_else(|| {
                unnamed += 1;
                format!("${unnamed}")
            });
            columns.push((name, self.scalar(expr)?));
        }
        if let Some((SelectItem { expr, alias }, (name, _))) =
            first_duplicate(&columns).and_then(|at| items.get(at).zip(columns.get(at)))
        {
            let span = alias.as_ref().map_or(expr.span, |name| name.span);
            let diagnostic = Diagnostic::duplicate_property(span, name).with_hint("Give one of them an alias.");
            return Err(diagnostic.into_error(self.text));
        }
        Ok(columns)
    }

    // TOP, OFFSET, LIMIT

    fn counts(&self, select: &Select) -> Result<(u64, Option<u64>)> {
        let counts =
            check::counts(select, self.bind.parameters).map_err(|diagnostic| diagnostic.into_error(self.text))?;
        Ok(match counts.offset_limit {
            Some((offset, limit)) => (offset, Some(limit)),
            None => (0, counts.top),
        })
    }

    // Helpers.

    fn slot(&self, name: &str) -> Option<usize> {
        self.names.iter().rposition(|alias| alias.as_deref() == Some(name))
    }

    fn error(&self, span: Span, code: &'static str, message: impl Into<String>) -> Error {
        Diagnostic::coded(span, code, message).into_error(self.text)
    }

    fn varies(&self, node: &ScalarExpr) -> bool {
        match node {
            ScalarExpr::Call { function, .. } => match function.varies {
                Varies::Never => false,
                Varies::PerRun => self.bind.started_ms.is_none(),
                Varies::PerCall => true,
            },
            ScalarExpr::UserCall { .. }
            | ScalarExpr::Subquery { .. }
            | ScalarExpr::Slot(_)
            | ScalarExpr::Path { .. } => true,
            ScalarExpr::Key { .. } | ScalarExpr::Aggregate { .. } => true,
            _ => false,
        }
    }

    /// Constant folding: evaluates a node whose operands are all constant.
    fn fold(&self, node: ScalarExpr) -> ScalarExpr {
        let mut foldable = !node.is_constant() && !self.varies(&node);
        node.each_child(&mut |child| foldable &= child.is_constant());
        if !foldable {
            return node;
        }
        let env = ManualEnv::default();
        let cx = Context {
            env: &env,
            started_ms: self.bind.started_ms.unwrap_or_default(),
            geospatial: self.bind.geospatial,
            user_functions: None,
            memory: MemoryBudget::new(FOLDED_BYTES_MAX),
            interrupt: Some(&CheckLimit::new(FOLDED_CHECKS_MAX)),
        };
        match evaluate(&node, None, &cx).map(|term| term.map(|value| value.into_owned())) {
            Ok(Some(value)) => ScalarExpr::Constant(value),
            Ok(None) => ScalarExpr::Undefined,
            // Too large or not supported: the error is reported when the query runs.
            Err(_) => node,
        }
    }
}

/// The first column whose name an earlier column already has.
fn first_duplicate(columns: &[(String, ScalarExpr)]) -> Option<usize> {
    let mut by_name: Vec<(&str, usize)> = columns.iter().zip(0..).map(|((name, _), at)| (name.as_str(), at)).collect();
    by_name.sort_unstable();
    by_name.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].1).min()
}

fn filter_at(node: ScalarExpr, first: usize) -> Filter {
    let level = node.last_slot().map_or(0, |slot| (slot + 1).saturating_sub(first));
    Filter { level, node }
}
