# The names of articles and of their sections in the site, for guides.awk and search.awk.

# The last component of a path without its extension.
function stem(path) { sub(".*/", "", path); sub("\\.md$", "", path); return path }
function article(path) {
  if (path ~ "\\.docc/") return stem(path)
  return stem(path) == "README" ? "Guides" : stem(path) "-guide"
}

# The name of a section in links of documents, and in links of DocC.
function slug(title) { title = tolower(title); gsub("[^a-z0-9 -]", "", title); gsub(" ", "-", title); return title }
function fragment(title) { gsub("[`'\"“”,:./()]", "", title); gsub(" +", "-", title); return title }
