# Writes factanal.json: Rscript factanal.R, in this folder. Needs nothing beyond R.
plain <- function(m) paste0("[", paste(sprintf("%.15g", as.vector(t(as.matrix(m)))), collapse = ", "), "]")
fit_of <- function(x, k, rotation) {
  f <- factanal(x, k, rotation = rotation, control = list(opt = list(factr = 1, pgtol = 0, maxit = 5000), nstart = 3))
  paste0(
    "{\"uniquenesses\": ", plain(f$uniquenesses), ", \"loadings\": ", plain(unclass(f$loadings)),
    ", \"statistic\": ", plain(f$STATISTIC), ", \"dof\": ", f$dof, ", \"p_value\": ", plain(f$PVAL), "}"
  )
}
table_of <- function(x, k) {
  x <- as.matrix(x)
  rotations <- c("none", "varimax", "promax")
  fits <- sapply(rotations, function(r) paste0("\"", r, "\": ", fit_of(x, k, r)))
  paste0("{\"k\": ", k, ", \"columns\": ", ncol(x), ", \"rows\": ", plain(x), ", ", paste(fits, collapse = ", "), "}")
}
writeLines(paste0(
  "{\"source\": \"", R.version.string, "; script factanal.R\",\n\"mtcars\": ", table_of(mtcars, 3),
  ",\n\"attitude\": ", table_of(attitude, 2), ",\n\"swiss\": ", table_of(swiss, 2), "}"
), "factanal.json")
