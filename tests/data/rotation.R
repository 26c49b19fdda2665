# Writes rotation.json: Rscript rotation.R, in this folder. Needs GPArotation, psych and jsonlite.
library(GPArotation)
plain <- function(m) unname(unclass(as.matrix(m)))
# Rotations of the first three loadings V sqrt(lambda) of the correlation matrices of two tables that R carries.
loadings_of <- function(x, k) {
  p <- prcomp(x, scale. = TRUE)
  p$rotation[, 1:k] %*% diag(p$sdev[1:k])
}
rotations <- function(A) {
  tight <- 1e-15
  v <- varimax(A, normalize = TRUE, eps = tight)
  raw <- varimax(A, normalize = FALSE, eps = tight)
  # stats::promax calls varimax with its default tolerance of 1e-5; give it loadings that are varimax already.
  m <- promax(v$loadings, m = 4)
  three <- promax(v$loadings, m = 3)
  q <- GPForth(A, method = "quartimax", normalize = FALSE, eps = 1e-7, maxit = 10000)
  qn <- GPForth(A, method = "quartimax", normalize = TRUE, eps = 1e-7, maxit = 10000)
  e <- GPForth(A, method = "cf", methodArgs = list(kappa = ncol(A) / (2 * nrow(A))), eps = 1e-7, maxit = 10000)
  list(
    loadings = plain(A),
    varimax = plain(v$loadings), varimax_raw = plain(raw$loadings),
    promax = plain(m$loadings), promax_three = plain(three$loadings),
    promax_correlations = plain(solve(crossprod(m$rotmat))),
    quartimax_raw = plain(q$loadings), quartimax = plain(qn$loadings), equamax_raw = plain(e$loadings)
  )
}
out <- list(
  source = paste0(R.version.string, "; GPArotation ", packageVersion("GPArotation"), "; psych ",
                  packageVersion("psych"), "; script rotation.R"),
  mtcars = rotations(loadings_of(mtcars, 3)),
  thurstone = rotations(plain(psych::fa(psych::Thurstone, 3, rotate = "none", fm = "minres")$loadings)),
  attitude = rotations(loadings_of(attitude, 2))
)
writeLines(jsonlite::toJSON(out, digits = I(13), auto_unbox = TRUE), "rotation.json")
