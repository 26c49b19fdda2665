# Fits of R's mclust that tests/estimators/test_mixture_mclust.py compares with:  Rscript mclust_grid.R > mclust_grid.json
suppressMessages(library(mclust))
tight <- emControl(tol = c(1e-12, 1e-10), itmax = c(20000, 20000))
number <- function(x) paste0("[", paste(sprintf("%.12g", as.vector(x)), collapse = ", "), "]")
grid <- function(name, X, sizes, models) {
  tree <- hc(X, modelName = "VVV", use = "SVD")
  lines <- c()
  for (k in sizes) for (model in models) {
    fit <- tryCatch(Mclust(X, G = k, modelNames = model, control = tight, verbose = FALSE,
                           initialization = list(hcPairs = tree)), error = function(e) NULL)
    if (is.null(fit) || is.na(fit$loglik)) next
    lines <- c(lines, sprintf('    {"model": "%s", "k": %d, "loglik": %.8f, "df": %d, "bic": %.8f, "icl": %.8f}',
                              model, k, fit$loglik, fit$df, fit$bic, icl(fit)))
  }
  labels <- hclass(tree, 3)
  paste0('  "', name, '": {\n   "hclass3": ', number(labels), ',\n   "fits": [\n', paste(lines, collapse = ",\n"), "\n   ]}")
}
prior <- function(name, X, k, models) {
  parts <- c()
  for (model in models) {
    fit <- Mclust(X, G = k, modelNames = model, control = tight, prior = priorControl(), verbose = FALSE)
    p <- fit$parameters
    sigma <- if (is.null(p$variance$sigma)) array(p$variance$sigmasq, c(1, 1, k)) else p$variance$sigma
    parts <- c(parts, sprintf('    {"model": "%s", "k": %d, "loglik": %.8f, "pro": %s, "mean": %s, "sigma": %s}', model, k,
                              fit$loglik, number(p$pro), number(p$mean), number(sigma)))
  }
  paste0('  "', name, '_prior": [\n', paste(parts, collapse = ",\n"), "\n   ]")
}
models <- mclust.options("emModelNames")
cat("{\n")
cat(sprintf('  "source": "R %s, mclust %s; data sets faithful and iris of R",\n', getRversion(), packageVersion("mclust")))
cat(grid("faithful", faithful, 1:4, models), ",\n", sep = "")
cat(grid("iris", iris[, 1:4], 1:3, models), ",\n", sep = "")
cat(prior("faithful", faithful, 2, c("EII", "VII", "EEI", "VVI", "EEE", "VVV")), "\n", sep = "")
cat("}\n")
