//! Relations between two figures on the same surface: intersects, within, distance.
//!
//! Invariant: `distance` is 0 exactly if `intersects` is true; boundaries belong to the figures they bound. Edges are
//! compared group by group, and points are tested against a polygon only where boundaries cross or touch: between two
//! such points nothing changes. `check_cancelled` is called with the number of steps before they are made.

use crate::CheckCancelled;
use crate::figure::{EdgeGroup, Figure, Segment, SurfacePoint, segments};

pub fn intersects<P: SurfacePoint, E>(a: &Figure<P>, b: &Figure<P>, pulse: CheckCancelled<'_, E>) -> Result<bool, E> {
    Ok(covers_any(b, starts(a), pulse)? || covers_any(a, starts(b), pulse)? || borders_meet(a, b, pulse)?)
}

fn covers_any<P: SurfacePoint, E>(
    figure: &Figure<P>,
    mut places: impl Iterator<Item = P>,
    pulse: CheckCancelled<'_, E>,
) -> Result<bool, E> {
    let edges = figure.edge_count();
    places.try_fold(false, |found, place| {
        pulse(edges)?;
        Ok(found || figure.covers(place))
    })
}

/// One point of each part; if no boundaries intersect, the whole part is on the same side as this point.
fn starts<P: SurfacePoint>(figure: &Figure<P>) -> impl Iterator<Item = P> {
    figure.chains().filter_map(|chain| chain.first().copied())
}

fn borders_meet<P: SurfacePoint, E>(a: &Figure<P>, b: &Figure<P>, pulse: CheckCancelled<'_, E>) -> Result<bool, E> {
    for one in a.bundles() {
        pulse(b.bundles().len())?;
        for other in b.bundles().iter().filter(|other| one.may_meet(other)) {
            pulse(STEPS_PER_PAIR * one.edges.len() * other.edges.len())?;
            if bundles_meet(one, other) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Comparing two edges takes longer than testing a point against one.
const STEPS_PER_PAIR: usize = 16;

fn bundles_meet<P: SurfacePoint>(one: &EdgeGroup<P>, other: &EdgeGroup<P>) -> bool {
    one.edges.iter().any(|&one| other.edges.iter().any(|&other| meet(one, other)))
}

fn meet<P: SurfacePoint>(one: Segment<P>, other: Segment<P>) -> bool {
    P::crossing(one, other).is_some()
        || one.from.on(other)
        || one.to.on(other)
        || other.from.on(one)
        || other.to.on(one)
}

/// No point of `a` is outside `b`: its edges are not, and `b` has no boundary (of a hole, say) inside `a`.
pub fn within<P: SurfacePoint, E>(a: &Figure<P>, b: &Figure<P>, pulse: CheckCancelled<'_, E>) -> Result<bool, E> {
    if b.polygons.is_empty() && !a.polygons.is_empty() {
        return Ok(false);
    }
    let encloses = |place: P| a.polygons.iter().any(|polygon| polygon.encloses(place));
    if !all_witnesses(a, b, pulse, |place| b.covers(place))? {
        return Ok(false);
    }
    Ok(a.polygons.is_empty() || all_witnesses(b, a, pulse, |place| !encloses(place))?)
}

/// Whether `is_right` holds for all points that determine on which side of the boundaries of `b` the parts of `a`
/// are.
fn all_witnesses<P: SurfacePoint, E>(
    a: &Figure<P>,
    b: &Figure<P>,
    pulse: CheckCancelled<'_, E>,
    is_right: impl Fn(P) -> bool,
) -> Result<bool, E> {
    let edges = b.edge_count();
    for chain in a.chains() {
        pulse(edges)?;
        if chain.first().is_some_and(|first| !is_right(*first)) {
            return Ok(false);
        }
        for edge in segments(chain) {
            pulse(b.bundles().len())?;
            for place in pieces(edge, b, pulse)? {
                pulse(edges)?;
                if !is_right(place) {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// One point of each piece into which the figure's boundaries cut the edge. Together with the chain's first point
/// they determine on which side of the boundaries all of the chain is.
///
/// None for an edge that no boundary touches: it is on the same side as the edge before it.
fn pieces<P: SurfacePoint, E>(edge: Segment<P>, figure: &Figure<P>, pulse: CheckCancelled<'_, E>) -> Result<Vec<P>, E> {
    let bundle = EdgeGroup::new(&[edge]);
    let mut touched = false;
    let mut stops = vec![edge.from, edge.to];
    for near in figure.bundles().iter().filter(|other| other.may_meet(&bundle)) {
        pulse(STEPS_PER_PAIR * near.edges.len())?;
        for &other in &near.edges {
            touched |= meet(edge, other);
            stops.extend(P::crossing(edge, other));
            stops.extend([other.from, other.to].into_iter().filter(|end| end.on(edge)));
        }
    }
    Ok(if touched { middles(edge, stops) } else { Vec::new() })
}

fn middles<P: SurfacePoint>(edge: Segment<P>, mut stops: Vec<P>) -> Vec<P> {
    stops.sort_by(|a, b| a.progress(edge).total_cmp(&b.progress(edge)));
    let pairs = stops.iter().zip(stops.iter().skip(1)).filter(|(from, to)| !from.same(**to));
    pairs.map(|(from, to)| from.middle(*to)).collect()
}

pub fn distance<P: SurfacePoint, E>(a: &Figure<P>, b: &Figure<P>, pulse: CheckCancelled<'_, E>) -> Result<f64, E> {
    if intersects(a, b, pulse)? {
        return Ok(0.0);
    }
    if let (Some(from), Some(to)) = (a.only_point(), b.only_point()) {
        return Ok(from.gap(Segment { from: to, to }, f64::INFINITY));
    }
    pulse(a.bundles().len() * b.bundles().len())?;
    let pairs =
        a.bundles().iter().flat_map(|one| b.bundles().iter().map(move |other| (one.gap_min(other), one, other)));
    let mut pairs = pairs.collect::<Vec<_>>();
    pairs.sort_by(|x, y| x.0.total_cmp(&y.0));
    let mut best = f64::INFINITY;
    for (bound, one, other) in pairs {
        if bound >= best {
            break; // all others are at least as far
        }
        pulse(STEPS_PER_PAIR * one.edges.len() * other.edges.len())?;
        best = nearer(one, other, best);
    }
    Ok(best)
}

/// The distance between two groups, or `best` if that is less. Edges that do not cross are nearest at an end of one
/// of them: the pair with the smallest cheap bound is measured first, then the pairs whose bound is below the best
/// distance.
fn nearer<P: SurfacePoint>(one: &EdgeGroup<P>, other: &EdgeGroup<P>, best: f64) -> f64 {
    let bounded = || ends(one, other).chain(ends(other, one)).map(|(place, edge)| (place.gap_min(edge), place, edge));
    let Some((bound, place, edge)) = bounded().min_by(|x, y| x.0.total_cmp(&y.0)) else { return best };
    if bound >= best {
        return best;
    }
    let first = best.min(place.gap(edge, best));
    bounded().fold(
        first,
        |best, (bound, place, edge)| {
            if bound < best { best.min(place.gap(edge, best)) } else { best }
        },
    )
}

/// Every end of an edge of one group with every edge of the other.
fn ends<P: SurfacePoint>(one: &EdgeGroup<P>, other: &EdgeGroup<P>) -> impl Iterator<Item = (P, Segment<P>)> {
    // Each edge begins where the one before it ends.
    let last = one.edges.last().map(|edge| edge.to);
    let places = one.edges.iter().map(|edge| edge.from).chain(last);
    places.flat_map(|place| other.edges.iter().map(move |&edge| (place, edge)))
}
