# Writes mle.json: Rscript mle.R, in this folder. Needs MASS, survival and jsonlite.
library(MASS)
library(survival)
tight <- list(reltol = 1e-16, maxit = 10000)
plain <- function(name, x, ...) {
  f <- suppressWarnings(fitdistr(x, name, ...))
  list(estimate = as.list(f$estimate), sd = as.list(f$sd), loglik = as.numeric(f$loglik))
}
survived <- function(y, dist) {
  f <- survreg(y ~ 1, dist = dist, control = survreg.control(rel.tolerance = 1e-14, maxiter = 200))
  v <- vcov(f)
  # location mu and ln(scale) of ln(time), or of time itself
  list(mu = unname(coef(f)), log_scale = if (nrow(v) > 1) log(f$scale) else 0, vcov = unname(v), loglik = f$loglik[1])
}
y <- Surv(lung$time, lung$status == 2)
mice <- list(lower = c(0, 0, 2, 3, 3, 5, 6, 7, 8, 8, 10, 12), upper = c(2, 3, 2, 5, 6, 9, 6, 12, NA, 13, NA, 15))
i2 <- Surv(ifelse(mice$lower == 0, NA, mice$lower), mice$upper, type = "interval2")
out <- list(
  source = paste0(R.version.string, "; MASS ", packageVersion("MASS"), " (fitdistr; data: R's rivers and precip, MASS's quine), ",
                  "survival ", packageVersion("survival"), " (survreg; data: lung, tobin, and intervals written in mle.R)"),
  rivers = rivers,
  rivers_gamma = plain("gamma", rivers / 100, lower = c(0.01, 0.001), control = list(factr = 1, maxit = 10000)),
  rivers_weibull = plain("weibull", rivers / 100, control = tight),
  rivers_lognormal = plain("lognormal", rivers / 100),
  rivers_exponential = plain("exponential", rivers / 100),
  precip = as.numeric(precip),
  precip_logistic = plain("logistic", as.numeric(precip), control = tight),
  precip_t = plain("t", as.numeric(precip) + c(rep(0, 60), seq(-90, 90, length.out = 10)), control = tight),
  precip_beta = plain("beta", as.numeric(precip) / 100, start = list(shape1 = 2, shape2 = 4), control = tight),
  days = quine$Days,
  days_negative_binomial = plain("negative binomial", quine$Days, control = tight),
  days_poisson = plain("poisson", quine$Days),
  days_geometric = plain("geometric", quine$Days),
  lung = list(time = lung$time, event = as.integer(lung$status == 2)),
  lung_weibull = survived(y, "weibull"), lung_exponential = survived(y, "exponential"),
  lung_lognormal = survived(y, "lognormal"), lung_gaussian = survived(y, "gaussian"),
  lung_logistic = survived(y, "logistic"), lung_t4 = survived(y, "t"),
  tobin = list(durable = tobin$durable),
  tobin_gaussian = survived(Surv(tobin$durable, tobin$durable > 0, type = "left"), "gaussian"),
  mice = mice,
  mice_weibull = survived(i2, "weibull"), mice_lognormal = survived(i2, "lognormal"), mice_gaussian = survived(i2, "gaussian")
)
writeLines(jsonlite::toJSON(out, digits = I(13), auto_unbox = TRUE, na = "null"), "mle.json")
