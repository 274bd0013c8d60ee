# Converts documents to articles of DocC, for Scripts/docs.
#
#   awk -v output=FOLDER -f articles.awk -f guides.awk FILE.md ...
#
# An article has the name of its document and "-guide", because documents and types may have the same name. The index,
# README.md, is Guides. Links to documents become links to articles. Other relative links, such as those to tests,
# become text, because their targets are not part of the site.

# Returns the text of a link for its target, with the target that it has in the site.
function link(text, target, file,   path, section) {
  if (target ~ "^[a-z]+:") return "[" text "](" target ")"
  path = target; section = ""
  if (match(target, "#")) { path = substr(target, 1, RSTART - 1); section = substr(target, RSTART + 1) }
  if (path != "" && (path !~ "\\.md$" || !((stem(path), "") in titles) || path ~ "^\\.\\./(\\.\\./)?[A-Z]+[a-z]*/|CONTRIBUTING")) return text
  if (path == "") path = file
  if (section != "") section = "#" fragment(titles[stem(path), section])
  return "[" text "](doc:" article(path) section ")"
}

# Converts the links of a text that may have several lines.
function convert(text, file,   result, start, target, rest) {
  result = ""
  while (match(text, "\\]\\([^) ]*\\)")) {
    target = substr(text, RSTART + 2, RLENGTH - 3)
    start = RSTART - 1
    rest = substr(text, RSTART + RLENGTH)
    while (start > 0 && substr(text, start, 1) != "[") start--
    result = result substr(text, 1, start - 1) link(substr(text, start + 1, RSTART - start - 1), target, file)
    text = rest
  }
  return result text
}

# Converts the definition of a link, such as `[name]: Page.md`.
function definition(line, file,   target, converted) {
  target = line
  sub("^[^:]*: *", "", target)
  converted = link("", target, file)
  if (!sub("^\\[\\]\\(", "", converted) || !sub("\\)$", "", converted)) return line
  sub(":.*", ": ", line)
  return line converted
}

function flush() { printf "%s", convert(chunk, file) > out; chunk = "" }

# The groups of the index, which order the articles in the navigator.
function topics(   i) {
  printf "\n## Topics\n" > out
  for (i = 1; i <= entryCount; i++) print entries[i] > out
}

BEGIN {
  for (i = 1; i < ARGC; i++) {
    file = ARGV[i]; isCode = 0
    while ((getline line < file) > 0) {
      if (line ~ "^```") isCode = !isCode
      if (isCode || line !~ "^#") continue
      sub("^#+ +", "", line)
      titles[stem(file), ""] = 1
      titles[stem(file), slug(line)] = line
    }
    close(file)
  }
  for (i = 1; i < ARGC; i++) {
    file = ARGV[i]; isCode = 0; chunk = ""; group = ""
    out = output "/" article(file) ".md"
    while ((getline line < file) > 0) {
      if (line ~ "^```") { if (!isCode) flush(); isCode = !isCode; print line > out; continue }
      if (isCode) { print line > out; continue }
      # Code that readers do not see; see Scripts/samples.
      if (line ~ "^<!--") isHidden = 1
      if (isHidden) { isHidden = line !~ "-->"; continue }
      if (stem(file) == "README" && line ~ "^## ") group = line
      if (group != "" && group !~ "upstream") {
        if (line ~ "^## ") entries[++entryCount] = "\n#" line "\n"
        text = line
        while (match(text, "\\]\\([^) ]*\\)")) {
          target = substr(text, RSTART + 2, RLENGTH - 3)
          text = substr(text, RSTART + RLENGTH)
          entry = link("", target, file)
          if (sub("^\\[\\]\\(", "<", entry) && sub("\\)$", ">", entry)) entries[++entryCount] = "- " entry
        }
      }
      # DocC shows the marks of code in titles.
      if (line ~ "^#") gsub("`", "", line)
      if (line ~ "^\\[[^]]+\\]: ") line = definition(line, file)
      chunk = chunk line "\n"
    }
    flush()
    if (stem(file) == "README") topics()
    close(out)
    close(file)
  }
}
