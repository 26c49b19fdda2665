# Writes mclust.json: Rscript mclust.R, in this folder. Needs mclust and jsonlite.
suppressMessages(library(mclust))
models <- c("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")
plain <- function(m) unname(unclass(as.matrix(m)))
x <- as.matrix(iris[, 1:4])
# Every row belongs to its species by 0.8, to the next by 0.15 and to the one after by 0.05.
own <- unmap(as.integer(iris$Species))
z <- 0.8 * own + 0.15 * own[, c(3, 1, 2)] + 0.05 * own[, c(2, 3, 1)]
tight <- emControl(tol = c(1e-12, 1e-14), itmax = c(20000, 20000), eps = 0)
sigma <- function(fit) lapply(1:3, function(k) plain(fit$parameters$variance$sigma[, , k]))
single <- function(model) {
  m <- mstep(x, model, z, control = tight)
  list(parameters = nMclustParams(model, 4, 3), covariances = sigma(m), means = plain(t(m$parameters$mean)))
}
converged <- function(model) {
  f <- me(x, model, own, control = tight)
  list(log_likelihood = f$loglik, weights = f$parameters$pro, means = plain(t(f$parameters$mean)),
       covariances = sigma(f))
}
with_prior <- function(model) {
  m <- mstep(x, model, z, prior = priorControl(), control = tight)
  f <- me(x, model, own, prior = priorControl(), control = tight)
  list(means = plain(t(m$parameters$mean)), covariances = sigma(m), log_likelihood = f$loglik,
       fitted_means = plain(t(f$parameters$mean)))
}
univariate <- function(model, prior) {
  y <- x[, 3]
  m <- if (prior) mstep(y, model, z, prior = priorControl()) else mstep(y, model, z)
  list(means = unname(m$parameters$mean), variances = rep(m$parameters$variance$sigmasq, length.out = 3))
}
each <- function(f, names) setNames(lapply(names, f), names)
out <- list(
  source = paste0(R.version.string, "; mclust ", packageVersion("mclust"), "; script mclust.R"),
  single = each(single, models),
  converged = each(converged, models),
  prior = each(with_prior, c("EII", "VII", "EEI", "VVI", "EEE", "VVV")),
  univariate = each(function(m) univariate(m, FALSE), c("E", "V")),
  univariate_prior = each(function(m) univariate(m, TRUE), c("E", "V"))
)
writeLines(jsonlite::toJSON(out, digits = I(13), auto_unbox = TRUE), "mclust.json")
