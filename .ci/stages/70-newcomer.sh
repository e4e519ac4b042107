# A stranger's first hour: each library imported alone through a module proxy,
# and the README's recipe to rename the module.
cd tools
go vet ./newcomer
go run ./newcomer
