# Writes mclust_noise.json: Rscript mclust_noise.R, in this folder. Needs mclust.
suppressMessages(library(mclust))
plain <- function(m) paste0("[", paste(sprintf("%.15g", as.vector(t(as.matrix(m)))), collapse = ", "), "]")
set.seed(7)
x <- as.matrix(faithful)
r <- apply(x, 2, range)
noise <- cbind(runif(70, r[1, 1] - 1, r[2, 1] + 1), runif(70, r[1, 2] - 10, r[2, 2] + 10))
x <- rbind(x, noise)
tight <- emControl(tol = c(1e-12, 1e-14), itmax = c(20000, 20000), eps = 0)
# Noise mixtures from the true partition, to convergence.
own <- c(ifelse(faithful$eruptions < 3, 1, 2), rep(3, 70))
noise_of <- function(model) {
  f <- me(x, model, unmap(own), control = tight, Vinv = hypvol(x, reciprocal = TRUE))
  paste0("\"", model, "\": {\"log_likelihood\": ", plain(f$loglik), ", \"weights\": ", plain(f$parameters$pro),
         ", \"means\": ", plain(t(f$parameters$mean)), ", \"bic\": ",
         plain(bic(model, f$loglik, nrow(x), 2, 2, noise = TRUE)), "}")
}
models <- c("EII", "VVI", "EEE", "VVV")
# Merging by entropy of a mixture of four normals, and the entropies.
y <- as.matrix(faithful)
f <- Mclust(y, G = 4, modelNames = "VVV", control = tight, verbose = FALSE)
co <- clustCombi(f)
entropy <- function(z) -sum(z[z > 0] * log(z[z > 0]))
entropies <- sapply(1:4, function(k) {
  z <- f$z
  if (k < 4) for (j in 4:(k + 1)) z <- t(co$combiM[[j - 1]] %*% t(z))
  entropy(z)
})
# Discriminant analysis by mixtures of each class: the covariance models and sizes that BIC chooses.
d <- MclustDA(iris[, 1:4], iris$Species, G = 1:2, modelNames = c("EEE", "VVV", "EEI"), verbose = FALSE)
p <- predict(d)
e <- MclustDA(iris[, 1:4], iris$Species, modelType = "EDDA", modelNames = c("EEE", "VVV", "EII"), verbose = FALSE)
q <- predict(e)
writeLines(paste0(
  "{\"source\": \"", R.version.string, "; mclust ", packageVersion("mclust"), "; script mclust_noise.R\",\n",
  "\"noise\": {\"rows\": ", plain(x), ", ", paste(sapply(models, noise_of), collapse = ",\n"), "},\n",
  "\"merging\": {\"weights\": ", plain(f$parameters$pro), ", \"means\": ", plain(t(f$parameters$mean)),
  ", \"covariances\": ", plain(matrix(f$parameters$variance$sigma, 4)), ", \"entropies\": ", plain(entropies),
  ", \"labels\": [", paste(sapply(1:4, function(k) plain(co$classification[[k]])), collapse = ", "), "]},\n",
  "\"classes\": {\"sizes\": ", plain(sapply(d$models, function(m) m$G)),
  ", \"models\": [", paste0("\"", sapply(d$models, function(m) m$modelName), "\"", collapse = ", "), "]",
  ", \"log_likelihood\": ", plain(d$loglik), ", \"bic\": ", plain(d$bic), ", \"z\": ", plain(p$z),
  ", \"edda\": {\"model\": \"", e$models[[1]]$modelName, "\", \"log_likelihood\": ", plain(e$loglik), ", \"bic\": ", plain(e$bic),
  ", \"z\": ", plain(q$z), "}}}"
), "mclust_noise.json")
