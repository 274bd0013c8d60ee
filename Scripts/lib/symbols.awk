# Moves the symbols of types to the module that exports them by name, for Scripts/docs. The compiler lists only those
# members that are not in an extension.
#
#   awk -v module=NAME -v exports="TYPE TYPE ..." -f symbols.awk GRAPH
#
#   module    the module that exports the types
#   exports   the names of the types; other types of the graph are left out
#   GRAPH     a symbol graph of the module with the types, pretty-printed

BEGIN { count = split(exports, list, " "); for (i = 1; i <= count; i++) isExported[list[i]] = 1 }

/^  "module": / { isModule = 1 }
isModule && /^    "name": / { $0 = "    \"name\": \"" module "\","; isModule = 0 }

/^  "symbols": \[/ { print; isSymbols = 1; next }
isSymbols && /^  \]/ { isSymbols = 0; printf "\n" }
!isSymbols { print; next }

# A symbol begins and ends with braces that are indented by four spaces.
/^    \{/ { symbol = ""; isPath = 0; type = "" }
{ symbol = symbol (symbol == "" ? "" : "\n") $0 }
isPath { type = $0; gsub("[ \",]", "", type); isPath = 0 }
/^      "pathComponents": / { isPath = 1 }
/^    \},?$/ {
  if (!(type in isExported)) next
  sub(",$", "", symbol)
  printf "%s%s", (separator++ ? ",\n" : ""), symbol
}
