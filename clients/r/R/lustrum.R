# Ask a Lustrum server for tables.

lu_get <- function(server, path, ..., root = "/api/v1") {
  # A parameter with several values stands several times; older versions of httr2 do not say so themselves.
  given <- list(...)
  words <- unlist(lapply(names(given), function(name) {
    paste0(name, "=", vapply(enc2utf8(as.character(given[[name]])), utils::URLencode, "", reserved = TRUE))
  }))
  query <- if (length(words)) paste0("?", paste(words, collapse = "&")) else ""
  request <- httr2::request(paste0(sub("/+$", "", server), root, path, query))
  request <- httr2::req_user_agent(request, "lustrum for R")
  # A server that is busy says with Retry-After when to come again.
  request <- httr2::req_retry(request, max_tries = 3)
  request <- httr2::req_error(request, body = function(response) {
    if (grepl("json", httr2::resp_content_type(response))) {
      httr2::resp_body_json(response)$detail
    }
  })
  httr2::req_perform(request)
}

#' The datasets of a server: name, title, description.
lu_datasets <- function(server) {
  found <- httr2::resp_body_json(lu_get(server, "/datasets"))$datasets
  column <- function(name) vapply(found, function(one) one[[name]], "")
  tibble::tibble(name = column("name"), title = column("title"), description = column("description"))
}

#' The variables of a dataset, with the levels that may be asked for.
lu_variables <- function(server, dataset) {
  found <- httr2::resp_body_json(lu_get(server, paste0("/datasets/", dataset)))$variables
  levels <- lapply(found, function(one) {
    unlist(lapply(one$hierarchies, function(hierarchy) {
      lapply(Filter(function(level) level$offered, hierarchy$levels), function(level) level$name)
    }))
  })
  tibble::tibble(
    name = vapply(found, function(one) one$name, ""),
    label = vapply(found, function(one) one$label, ""),
    size = vapply(found, function(one) one$size, 1L),
    levels = levels
  )
}

#' A table as a tibble: a code and a label for each variable, the value (NA where none is shown) and its status.
#'
#' `by` names variables, or `variable:level`; `where` selects people, as `c("region:1")`; `statistic` is such as
#' `"mean:turnover"`. What the server refuses is an error of class `lustrum_refusal` with its reasons. The notes
#' that belong to the table are its attribute `notes`.
lu_table <- function(server, dataset, by, where = NULL, statistic = NULL, totals = FALSE, weight = NULL) {
  parts <- list(dataset = dataset, by = by, where = where, statistic = statistic, weight = weight)
  if (totals) parts$totals <- "on"
  parts <- Filter(Negate(is.null), parts)
  response <- do.call(lu_get, c(list(server, "/tables"), parts))
  if (httr2::resp_status(response) == 202) {
    stop("The table is large and is made in the background; ask for less, or come back later.")
  }
  answer <- httr2::resp_body_json(response)
  if (is.null(answer$table)) {
    reasons <- vapply(answer$reasons, function(one) trimws(paste(one$text, one$way_forward)), "")
    message <- paste(c("The table was refused.", reasons), collapse = "\n")
    stop(structure(
      class = c("lustrum_refusal", "error", "condition"),
      list(message = message, call = NULL, reasons = reasons)
    ))
  }
  lu_tibble(answer$table, unlist(answer$notes), answer$links$page)
}

#' The prepared tables of a server: the name by which `lu_prepared_table` asks for each, and its label.
lu_prepared <- function(server) {
  found <- lapply(httr2::resp_body_json(lu_get(server, "/prepared"))$programmes, function(programme) {
    tables <- httr2::resp_body_json(lu_get(server, paste0("/prepared/", programme$name)))$tables
    lapply(tables, function(one) c(paste0(programme$name, ".", one$id), one$label))
  })
  found <- unlist(found, recursive = FALSE)
  column <- function(at) vapply(found, function(one) one[[at]], "")
  tibble::tibble(table = column(1), label = column(2))
}

#' A prepared table as a tibble, as `lu_table` brings one; a suppressed cell is NA, with its status beside it.
lu_prepared_table <- function(server, table) {
  answer <- httr2::resp_body_json(lu_get(server, paste0("/tables/", table, "/data"), root = "/pxapi/v2"))
  lu_tibble(answer, unlist(answer$note), answer$extension$address)
}

# A JSON-stat dataset as a tibble: its last variable runs fastest.
lu_tibble <- function(table, notes, page) {
  sizes <- unlist(table$size)
  names <- unlist(table$id)
  cells <- prod(sizes)
  columns <- list()
  for (at in seq_along(names)) {
    category <- table$dimension[[names[at]]]$category
    codes <- if (is.null(names(category$index))) unlist(category$index) else names(category$index)
    after <- if (at < length(sizes)) prod(sizes[(at + 1):length(sizes)]) else 1
    places <- (seq_len(cells) - 1) %/% after %% sizes[at] + 1
    columns[[names[at]]] <- codes[places]
    columns[[paste0(names[at], "_label")]] <- unlist(category$label[codes], use.names = FALSE)[places]
  }
  columns$value <- vapply(table$value, function(one) if (is.null(one)) NA_real_ else as.numeric(one), 1)
  columns$status <- rep("F", cells)
  status <- unlist(table$status)
  at <- if (is.null(names(status))) seq_along(status) else as.integer(names(status)) + 1L
  columns$status[at] <- status
  made <- tibble::as_tibble(columns)
  class(made) <- c("lustrum_table", class(made))
  structure(made, title = table$label, notes = notes, page = page)
}

print.lustrum_table <- function(x, ...) {
  cat(attr(x, "title"), "\n", sep = "")
  NextMethod()
  for (note in attr(x, "notes")) cat("Note: ", note, "\n", sep = "")
  invisible(x)
}
