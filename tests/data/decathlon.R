# Writes decathlon.csv and decathlon.json: Rscript decathlon.R, in this folder.
# Needs FactoMineR and jsonlite. The table is FactoMineR's `decathlon`: the performances of 41 athletes at the Decastar and
# the Olympic Games of 2004 (Le, Josse and Husson 2008, FactoMineR: An R package for multivariate analysis, Journal of
# Statistical Software 25(1)).
library(FactoMineR)
data(decathlon)
table <- data.frame(athlete = rownames(decathlon), decathlon, check.names = FALSE)
write.csv(table, "decathlon.csv", row.names = FALSE, quote = FALSE)

plain <- function(m) unname(as.matrix(m))
parts <- function(x, names) lapply(setNames(names, names), function(name) {
  value <- x[[name]]
  if (is.null(dim(value))) unname(as.vector(value)) else plain(value)
})
read <- function(r) {
  out <- list(
    eig = plain(r$eig),
    var = parts(r$var, c("coord", "cor", "cos2", "contrib")),
    ind = parts(r$ind, c("coord", "cos2", "contrib", "dist"))
  )
  if (!is.null(r$quanti.sup)) out$quanti_sup <- parts(r$quanti.sup, c("coord", "cor", "cos2"))
  if (!is.null(r$quali.sup)) out$quali_sup <- parts(r$quali.sup, c("coord", "cos2", "v.test", "dist", "eta2"))
  if (!is.null(r$ind.sup)) out$ind_sup <- parts(r$ind.sup, c("coord", "cos2", "dist"))
  out
}

weights <- rep(c(1, 2, 3, 1), length.out = 41)
out <- list(
  source = paste0(R.version.string, "; FactoMineR ", packageVersion("FactoMineR"), "; script decathlon.R"),
  scaled = read(PCA(decathlon, quanti.sup = 11:12, quali.sup = 13, ncp = 10, graph = FALSE)),
  unscaled = read(PCA(decathlon, quanti.sup = 11:12, quali.sup = 13, ncp = 5, scale.unit = FALSE, graph = FALSE)),
  last_rows_supplementary = read(PCA(decathlon[, 1:10], ind.sup = 36:41, ncp = 5, graph = FALSE)),
  weights = weights,
  weighted = read(PCA(decathlon, quanti.sup = 11:12, quali.sup = 13, row.w = weights, ncp = 5, graph = FALSE))
)
races <- decathlon[, c(1, 5, 6, 10)]
throws <- decathlon[, c(3, 7, 9)]
out$rv <- coeffRV(races, throws)
out$rv_few <- coeffRV(races[1:8, ], decathlon[1:8, 11:12])
# biplot.prcomp returns nothing: catch the coordinates it hands to biplot.default.
biplots <- list()
saved <- NULL
pdf(NULL)
invisible(trace(stats:::biplot.default, quote(saved <<- list(rows = unname(x), columns = unname(y))),
                print = FALSE, where = asNamespace("stats")))
for (scale in c(0, 0.5, 1)) for (pc in c(FALSE, TRUE)) {
  stats:::biplot.prcomp(prcomp(USArrests, scale. = TRUE), scale = scale, pc.biplot = pc)
  biplots[[length(biplots) + 1]] <- list(scale = scale, pc = pc, rows = saved$rows, columns = saved$columns)
}
out$usarrests <- plain(USArrests)
out$biplots <- biplots
writeLines(jsonlite::toJSON(out, digits = I(12), auto_unbox = TRUE), "decathlon.json")
