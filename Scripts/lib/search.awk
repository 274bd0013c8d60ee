# Writes the sections of documents as JSON, one in a line, for the search of the site.
#
#   awk -f articles.awk -f search.awk FILE.md ...

# Text as a string of JSON, without the marks of Markdown and the targets of links.
function quoted(text) {
  gsub("\\]\\([^) ]*\\)", "", text)
  gsub("[`[*|]|\\|[-|]+\\|", " ", text)
  gsub("[[:space:]]+", " ", text)
  gsub("\\\\", "\\\\\\\\", text)
  gsub("\"", "\\\"", text)
  sub("^ ", "", text)
  return "\"" text "\""
}

function flush(   path) {
  if (page == "") return
  path = "documentation/alamofire/" tolower(article(file)) (section == "" ? "" : "#" fragment(section))
  printf "%s{\"page\": %s, \"section\": %s, \"path\": %s, \"text\": %s}", (count++ ? ",\n" : ""), quoted(page),
    quoted(section), quoted(path), quoted(text)
}

BEGIN { print "[" }
FNR == 1 { flush(); file = FILENAME; page = section = text = ""; isCode = 0 }
/^```/ { isCode = !isCode; next }
!isCode && /^<!--/ { isHidden = 1 }
isHidden { isHidden = !/-->/; next }
!isCode && /^# / { page = substr($0, 3); next }
!isCode && /^##+ / { flush(); section = $0; sub("^#+ +", "", section); text = ""; next }
{ text = text " " $0 }
END { flush(); print "\n]" }
