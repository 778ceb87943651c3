# Suppression patterns of the R packages GaussSuppression and sdcTable, for bench/peers.py to audit.
#
#   Rscript bench/peers.R TOOL TABLE.csv.gz OUT.csv
#
# TOOL is gauss, gauss-intervals, gauss-singletons, sdctable-simple, sdctable-singletons, sdctable-opt or sdctable-hitas.
# TABLE has one row for each cell, margins included: codes in v1, v2, ... with `Total` for the margin and groups of one
# size such as `aG01`, then n (contributors), value, inner, primary and upl, the protection level, which counts both
# ways. OUT gets the codes and a column `suppressed`; a .txt beside it says which package, which version and how many CPU
# seconds the protection itself took.

given <- commandArgs(trailingOnly = TRUE)
tool <- given[1]
cells <- read.csv(gzfile(given[2]), stringsAsFactors = FALSE)
axes <- grep("^v[0-9]+$", names(cells), value = TRUE)
inner <- cells[cells$inner == 1, ]

# One hierarchy in the form that both packages read: every code below its parent, with its level as a row of @.
hierarchy <- function(codes) {
  groups <- sort(grep("^.G", codes, value = TRUE))
  leaves <- sort(setdiff(codes, c("Total", groups)))
  size <- length(leaves) / length(groups)
  below <- if (length(groups)) split(leaves, groups[(seq_along(leaves) - 1) %/% size + 1]) else NULL
  lines <- unlist(lapply(groups, function(g) c(g, below[[g]])))
  if (is.null(below)) lines <- leaves
  depth <- ifelse(length(groups) & !(lines %in% groups), "@@@", "@@")
  data.frame(levels = c("@", depth), codes = c("Total", lines), stringsAsFactors = FALSE)
}
trees <- lapply(cells[axes], function(codes) hierarchy(unique(codes)))
row_of <- function(codes) match(do.call(paste, codes[axes]), do.call(paste, cells[axes]))

gauss <- function(intervals = FALSE, singletons = FALSE) {
  primary <- function(crossTable, ...) {
    at <- row_of(crossTable)
    asked <- cells$primary[at] == 1
    level <- ifelse(asked, cells$upl[at], NA)
    limits <- data.frame(lomax_value = cells$value[at] - level, upmin_value = cells$value[at] + level)
    list(primary = asked, numExtra = if (intervals) limits)
  }
  # Cells that hold least are suppressed first: the value takes the place of the count.
  GaussSuppression::GaussSuppressionFromData(
    inner, hierarchies = trees, freqVar = "value", numVar = "value", primary = primary, preAggregate = FALSE,
    protectZeros = FALSE, printInc = FALSE, singleton = if (singletons) inner$n == 1,
    singletonMethod = if (singletons) "numTFTT" else "none",
    lpPackage = if (intervals) Sys.getenv("LP_PACKAGE", "highs")
  )
}

sdctable <- function(method, counts = "value", ...) {
  # The linear programs of sdcTable are about counts, so the value takes their place here as well, unless it must know
  # which cells have one contributor.
  problem <- sdcTable::makeProblem(inner[c(axes, "n", "value")], dimList = trees, freqVarInd = counts, weightInd = "value")
  found <- as.data.frame(sdcTable::sdcProb2df(problem, addDups = FALSE, dimCodes = "original"))
  at <- row_of(found)
  every <- seq_along(at)
  set <- function(problem, type, input) sdcTable::setInfo(problem, type, index = every, input = input)
  problem <- set(problem, "lb", rep(0, length(at)))
  problem <- set(problem, "ub", rep(max(cells$value), length(at)))
  problem <- set(problem, "LPL", cells$upl[at])
  problem <- set(problem, "UPL", cells$upl[at])
  problem <- set(problem, "SPL", rep(0, length(at)))
  problem <- set(problem, "sdcStatus", ifelse(cells$primary[at] == 1, "u", "s"))
  safe <- sdcTable::protectTable(problem, method = method, ...)
  done <- as.data.frame(sdcTable::getInfo(safe, "finalData"))
  done$suppressed <- done$sdcStatus %in% c("u", "x")
  done
}

run <- switch(tool,
  "gauss" = function() gauss(),
  "gauss-intervals" = function() gauss(intervals = TRUE),
  "gauss-singletons" = function() gauss(intervals = TRUE, singletons = TRUE),
  "sdctable-simple" = function() sdctable("SIMPLEHEURISTIC"),
  "sdctable-singletons" = function() sdctable("SIMPLEHEURISTIC", counts = "n", detectSingletons = TRUE),
  "sdctable-opt" = function() sdctable("OPT"),
  "sdctable-hitas" = function() sdctable("HITAS"),
  stop("unknown tool: ", tool)
)
package <- if (startsWith(tool, "gauss")) "GaussSuppression" else "sdcTable"
invisible(loadNamespace(package))
begin <- proc.time()
invisible(capture.output(result <- suppressMessages(run())))
spent <- proc.time() - begin
stopifnot(nrow(result) == nrow(cells), all(result$suppressed[cells$primary[row_of(result)] == 1]))
result$suppressed <- as.integer(result$suppressed)
write.csv(result[c(axes, "suppressed")], given[3], row.names = FALSE, quote = FALSE)
told <- paste(package, packageVersion(package), round(sum(spent[1:2]), 2))
writeLines(told, sub("csv$", "txt", given[3]))
